// SPDX-License-Identifier: Apache-2.0
// Counts how much memory of each GPU this process uses, and shows it in its rows (gpu/abi/fence.h).
// Usage: reserve, call the driver, release what it did not use. Safe with any number of threads and
// processes: together they never use more than the limit, and no request that would fit is refused.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/lock.hpp"

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint64_t kGranule = 2ULL << 20U;  // the driver's allocation unit

// UINT64_MAX if the result is not representable: such a size never fits.
constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
  return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

// Marks that a call that allocates or frees driver memory is in progress. Until it ends, this
// ledger and the host's reading do not match, and the host uses neither.
class MemoryCall {
 public:
  MemoryCall() = default;
  ~MemoryCall() { end(); }
  MemoryCall(const MemoryCall&) = delete;
  MemoryCall& operator=(const MemoryCall&) = delete;
  void begin(uint32_t gpu);
  void end();

 private:
  friend bool reserve(uint32_t gpu, uint64_t bytes, MemoryCall& call);
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t gpu_ = kNone;
};

// Always true without a share and for kNoGpu: the driver itself then reports any error.
bool reserve(uint32_t gpu, uint64_t bytes);
// The same, for a call that begins at this moment.
bool reserve(uint32_t gpu, uint64_t bytes, MemoryCall& call);
void release_reserved(uint32_t gpu, uint64_t bytes);
// Counts memory that the driver has already allocated, whether it fits or not.
void charge_unconditionally(uint32_t gpu, uint64_t bytes);

// The managed memory among it, which the host cannot attribute to this process.
void note_managed(uint32_t gpu, uint64_t bytes);
void release_managed(uint32_t gpu, uint64_t bytes);

// A context counts with an estimate until the host has measured it. Creating one takes time, during
// which the host would see only a part of it. So a call is marked as in progress until the context
// exists, and the host does not measure it.
bool reserve_context(uint32_t gpu);
void context_created(uint32_t gpu);
void release_context(uint32_t gpu);

// The share's limit on this GPU, and how much of it is free. False without a limit.
struct ShareMemory {
  uint64_t total, free;
};
bool share_memory(uint32_t gpu, ShareMemory& memory);

// Reports the refusal to the host and returns the error for the program.
CUresult refused(uint32_t gpu, uint64_t bytes);

// Held while new pages and a new slot replace the old ones. Then this process's usage is written
// into its new rows.
Lock& ledger_lock();
void rewrite_rows();
// Call this in the child of a fork, which uses nothing yet.
void reset_ledger_after_fork();

}  // namespace gantry::fence
