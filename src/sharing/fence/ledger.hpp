// SPDX-License-Identifier: Apache-2.0
// How much of each GPU this process holds, kept here and shown in its rows (abi.h). Reserve, call
// the driver, give back what it did not take. Safe with any number of threads and processes: what
// all hold together is never more than the limit, and nobody is refused what would fit.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/lock.hpp"

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint64_t kGranule = 2ULL << 20U;  // what the driver takes memory in

// UINT64_MAX where that is not representable: such a size fits nowhere.
constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
  return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

// A call that takes memory from the driver or gives it back is under way. Until it ends, what is
// written here and what the host sees do not fit, and the host believes neither.
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

// Always true without a share, and for kNoGpu: then the driver itself has something to say.
bool reserve(uint32_t gpu, uint64_t bytes);
// The same for a call that begins in that moment.
bool reserve(uint32_t gpu, uint64_t bytes, MemoryCall& call);
void release_reserved(uint32_t gpu, uint64_t bytes);
// What the driver has taken already, unasked: counted, whether it fits or not.
void charge_unconditionally(uint32_t gpu, uint64_t bytes);

// Of what is held: managed memory, which the host does not see as this process's.
void note_managed(uint32_t gpu, uint64_t bytes);
void release_managed(uint32_t gpu, uint64_t bytes);

// A context counts as an estimate until the host has seen it. Making one takes a while, in which
// the host sees a part of it: until it is made something is pending, and the host does not look.
bool reserve_context(uint32_t gpu);
void context_created(uint32_t gpu);
void release_context(uint32_t gpu);

// The share of the GPU, and what of it nobody holds. False without a limit.
struct ShareMemory {
  uint64_t total, free;
};
bool share_memory(uint32_t gpu, ShareMemory& memory);

// Tells the host, and says what the program is told.
CUresult refused(uint32_t gpu, uint64_t bytes);

// Held while other pages and another slot take the place of the old ones; then what this process
// holds is written into its new rows.
Lock& ledger_lock();
void rewrite_rows();
// In the child of a fork: it holds nothing.
void reset_ledger_after_fork();

}  // namespace gantry::fence
