// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/ledger.hpp"

#include "gpu/abi/fence.h"
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/overhead.hpp"
#include "sharing/fence/reclaim.hpp"

#include <sched.h>

namespace gantry::fence {
namespace {

// This process's own counts; the rows show them. The rows are written only here, under the lock, so
// that a new row can be filled after a restart of the daemon.
struct ProcessCounts {
  Lock lock;
  uint64_t held[FENCE_MAX_GPUS];
  uint64_t pending[FENCE_MAX_GPUS];
  uint64_t managed[FENCE_MAX_GPUS];
  uint32_t contexts[FENCE_MAX_GPUS];
  uint64_t begun[FENCE_MAX_GPUS];
  uint64_t ended[FENCE_MAX_GPUS];
};
constinit ProcessCounts process_counts{};

constexpr uint64_t kSettleNs = 1000000;
constexpr uint64_t kNear = 512ULL << 20U;  // to the limit, or an eighth of it: ask the host first
constexpr uint64_t kBeingMade = 1;         // pending while a context is created
constexpr uint64_t kLockPatienceNs = 2000000000;  // then the holder of the lock is considered dead

bool counts(uint32_t gpu) {
  return attached() && gpu < host.gpu_count;
}

void show(uint32_t gpu, FenceUsageRow& own) {
  // `held` first: to be counted twice for a moment is safe, not to be counted is not.
  __atomic_store_n(&own.held, process_counts.held[gpu], __ATOMIC_SEQ_CST);
  __atomic_store_n(&own.pending, process_counts.pending[gpu], __ATOMIC_SEQ_CST);
}

// The host reads `ended` first: a call that begins must be seen before what it changes.
void begin_call(uint32_t gpu, FenceUsageRow& own) {
  __atomic_store_n(&own.begun, ++process_counts.begun[gpu], __ATOMIC_SEQ_CST);
}
void end_call(uint32_t gpu, FenceUsageRow& own) {
  __atomic_store_n(&own.ended, ++process_counts.ended[gpu], __ATOMIC_SEQ_CST);
}

// Counted on its own, whatever call it is part of.
void show_change(uint32_t gpu) {
  FenceUsageRow& own = own_row(gpu);
  begin_call(gpu, own);
  end_call(gpu, own);
  show(gpu, own);
}

uint64_t limit_of(uint32_t gpu) {
  return __atomic_load_n(&limits().gpu[gpu].memory_limit, __ATOMIC_RELAXED);
}

enum class Count : uint8_t { Held, HeldAndPending };

uint64_t in_ledgers(uint32_t gpu, Count what) {
  uint64_t total = 0;
  for (uint32_t slot = 0, end = slots(); slot < end; ++slot) {
    const FenceUsageRow& each = row(gpu, slot);
    // Reads `pending` first: an amount that moves to `held` in between is then counted there.
    if (what == Count::HeldAndPending)
      total = saturating_add(total, __atomic_load_n(&each.pending, __ATOMIC_SEQ_CST));
    total = saturating_add(total, __atomic_load_n(&each.held, __ATOMIC_SEQ_CST));
  }
  return total;
}

uint64_t sum(uint32_t gpu, Count what) {
  const uint64_t beside = overhead(gpu);
  return saturating_add(beside, in_ledgers(gpu, what));
}

// The request: memory, or room for one more context, for a call that is about to begin.
enum class CallStart : uint8_t { Nothing, Call };
struct MemoryRequest {
  uint64_t bytes;
  uint32_t contexts;
  CallStart begins;
};

void show_contexts(uint32_t gpu, FenceUsageRow& own) {
  __atomic_store_n(&own.contexts, process_counts.contexts[gpu], __ATOMIC_SEQ_CST);
}

enum class FitResult : uint8_t {
  No,
  Close,  // refused by an outdated value: nothing is reserved
  Yes,
};
enum class CloseCheck : uint8_t { WhenClose, Never };

bool is_close(uint64_t used, uint64_t limit) {
  const uint64_t left = limit - used;
  return left < kNear && left < limit / 8;
}

// Adds before it sums: of two requests that fit only alone, at most one succeeds.
FitResult try_reserve(uint32_t gpu, const MemoryRequest& request, CloseCheck check) {
  const Guard guard(process_counts.lock);
  FenceUsageRow& own = own_row(gpu);
  process_counts.pending[gpu] += request.bytes;
  process_counts.contexts[gpu] += request.contexts;
  __atomic_store_n(&own.pending, process_counts.pending[gpu], __ATOMIC_SEQ_CST);
  if (request.contexts != 0) show_contexts(gpu, own);
  const uint64_t limit = limit_of(gpu);
  const uint64_t used = limit == UINT64_MAX ? 0 : sum(gpu, Count::HeldAndPending);
  FitResult fit = used <= limit ? FitResult::Yes : FitResult::No;
  if (fit == FitResult::Yes && check == CloseCheck::WhenClose && is_close(used, limit) &&
      is_reading_due(gpu))
    fit = FitResult::Close;
  process_counts.pending[gpu] -= request.bytes;
  if (fit == FitResult::Yes) {
    process_counts.held[gpu] += request.bytes;
    if (request.begins == CallStart::Call) begin_call(gpu, own);
  } else if (request.contexts != 0) {
    process_counts.contexts[gpu] -= request.contexts;
    show_contexts(gpu, own);
  }
  show(gpu, own);
  return fit;
}

// Serialises requests that are close to the limit. The lock ensures progress, not safety, so a lock
// whose owner is gone can be ignored.
class SlowPath {
 public:
  explicit SlowPath(uint64_t until) : mine_(1 + __atomic_load_n(&host.slot, __ATOMIC_RELAXED)) {
    for (;;) {
      uint32_t owner = 0;
      if (__atomic_compare_exchange_n(&host.usage->lock, &owner, mine_, false, __ATOMIC_ACQUIRE,
                                      __ATOMIC_RELAXED))
        return;
      if (monotonic_ns() > until) break;
      futex_wait(&host.usage->lock, owner, kAcrossProcesses, kSettleNs);
    }
    mine_ = 0;
  }
  ~SlowPath() {
    uint32_t owner = mine_;
    if (mine_ == 0 || !__atomic_compare_exchange_n(&host.usage->lock, &owner, 0, false,
                                                   __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      return;
    futex_wake(&host.usage->lock, kAcrossProcesses, 1);
  }
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

 private:
  uint32_t mine_;
};

uint64_t worth(uint32_t gpu, const MemoryRequest& request) {
  const FenceLimits& share = limits();
  const bool free = (__atomic_load_n(&share.flags, __ATOMIC_RELAXED) & FENCE_CONTEXT_FREE) != 0;
  if (request.contexts == 0 || free) return request.bytes;
  return saturating_add(request.bytes,
                        __atomic_load_n(&share.gpu[gpu].context_estimate, __ATOMIC_RELAXED));
}

// Refuses if there is no room even if all concurrent requests were refused; otherwise waits for
// them. Does not wait forever for a process that was stopped in the middle of a request, or lies.
bool reserve_in_turn(uint32_t gpu, const MemoryRequest& request, uint64_t until) {
  const SlowPath alone(until);
  while (try_reserve(gpu, request, CloseCheck::Never) != FitResult::Yes) {
    if (saturating_add(sum(gpu, Count::Held), worth(gpu, request)) > limit_of(gpu)) return false;
    if (monotonic_ns() > until) return false;
    sched_yield();
  }
  return true;
}

// Refused by the host's last measurement. The usage may be lower by now, or the host may have
// measured a new context.
bool reserve_after_look(uint32_t gpu, const MemoryRequest& request, uint64_t begin,
                        uint64_t until) {
  if (overhead(gpu) == 0) return false;
  if (saturating_add(in_ledgers(gpu, Count::Held), request.bytes) > limit_of(gpu)) return false;
  wait_for_reading(gpu, begin);
  if (reserve_in_turn(gpu, request, until)) return true;
  return wait_for_contexts(gpu) && reserve_in_turn(gpu, request, until);
}

bool reserve_request(uint32_t gpu, const MemoryRequest& request) {
  if (!counts(gpu)) return true;
  if (is_daemon_stale()) reattach();
  if (request.bytes > limit_of(gpu)) return false;
  const FitResult fit = try_reserve(gpu, request, CloseCheck::WhenClose);
  if (fit == FitResult::Yes) return true;
  const uint64_t begin = monotonic_ns();
  const uint64_t until = begin + kLockPatienceNs;
  if (fit == FitResult::Close) wait_for_reading(gpu, begin);
  if (reserve_in_turn(gpu, request, until)) return true;
  if (reclaim(gpu) && reserve_in_turn(gpu, request, until)) return true;
  return reserve_after_look(gpu, request, begin, until);
}

}  // namespace

void MemoryCall::begin(uint32_t gpu) {
  if (gpu_ != kNone || !counts(gpu)) return;
  const Guard guard(process_counts.lock);
  begin_call(gpu, own_row(gpu));
  gpu_ = gpu;
}

void MemoryCall::end() {
  const uint32_t gpu = gpu_;
  gpu_ = kNone;
  if (gpu == kNone) return;
  const Guard guard(process_counts.lock);
  if (counts(gpu)) end_call(gpu, own_row(gpu));
}

bool reserve(uint32_t gpu, uint64_t bytes) {
  return bytes == 0 || reserve_request(gpu, {bytes, 0, CallStart::Nothing});
}

bool reserve(uint32_t gpu, uint64_t bytes, MemoryCall& call) {
  if (!counts(gpu)) return true;
  if (!reserve_request(gpu, {bytes, 0, CallStart::Call})) return false;
  call.gpu_ = gpu;
  return true;
}

bool reserve_context(uint32_t gpu) {
  if (!reserve_request(gpu, {0, 1, CallStart::Nothing})) return false;
  if (!counts(gpu)) return true;
  const Guard guard(process_counts.lock);
  process_counts.pending[gpu] += kBeingMade;
  show(gpu, own_row(gpu));
  return true;
}

void context_created(uint32_t gpu) {
  if (!counts(gpu)) return;
  const Guard guard(process_counts.lock);
  if (process_counts.pending[gpu] >= kBeingMade) process_counts.pending[gpu] -= kBeingMade;
  show(gpu, own_row(gpu));
}

void release_reserved(uint32_t gpu, uint64_t bytes) {
  if (!counts(gpu) || bytes == 0) return;
  const Guard guard(process_counts.lock);
  process_counts.held[gpu] -= bytes < process_counts.held[gpu] ? bytes : process_counts.held[gpu];
  show_change(gpu);
}

void charge_unconditionally(uint32_t gpu, uint64_t bytes) {
  if (!counts(gpu) || bytes == 0) return;
  const Guard guard(process_counts.lock);
  process_counts.held[gpu] = saturating_add(process_counts.held[gpu], bytes);
  show_change(gpu);
}

void note_managed(uint32_t gpu, uint64_t bytes) {
  if (!counts(gpu)) return;
  const Guard guard(process_counts.lock);
  process_counts.managed[gpu] += bytes;
  __atomic_store_n(&own_row(gpu).managed, process_counts.managed[gpu], __ATOMIC_RELAXED);
}

void release_managed(uint32_t gpu, uint64_t bytes) {
  if (!counts(gpu)) return;
  const Guard guard(process_counts.lock);
  process_counts.managed[gpu] -=
      bytes < process_counts.managed[gpu] ? bytes : process_counts.managed[gpu];
  __atomic_store_n(&own_row(gpu).managed, process_counts.managed[gpu], __ATOMIC_RELAXED);
  process_counts.held[gpu] -= bytes < process_counts.held[gpu] ? bytes : process_counts.held[gpu];
  show_change(gpu);
}

void release_context(uint32_t gpu) {
  if (!counts(gpu)) return;
  const Guard guard(process_counts.lock);
  if (process_counts.contexts[gpu] > 0) --process_counts.contexts[gpu];
  show_contexts(gpu, own_row(gpu));
}

bool share_memory(uint32_t gpu, ShareMemory& memory) {
  if (!counts(gpu)) return false;
  memory.total = limit_of(gpu);
  if (memory.total == UINT64_MAX) return false;
  const uint64_t used = sum(gpu, Count::Held);
  memory.free = used < memory.total ? memory.total - used : 0;
  return true;
}

CUresult refused(uint32_t gpu, uint64_t bytes) {
  report(FENCE_REFUSED, gpu, 0, bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

Lock& ledger_lock() {
  return process_counts.lock;
}

void rewrite_rows() {
  for (uint32_t gpu = 0; gpu < host.gpu_count; ++gpu) {
    FenceUsageRow& own = own_row(gpu);
    show(gpu, own);
    show_contexts(gpu, own);
    __atomic_store_n(&own.managed, process_counts.managed[gpu], __ATOMIC_RELAXED);
    __atomic_store_n(&own.begun, process_counts.begun[gpu], __ATOMIC_SEQ_CST);
    __atomic_store_n(&own.ended, process_counts.ended[gpu], __ATOMIC_SEQ_CST);
  }
}

void reset_ledger_after_fork() {
  process_counts = {};
}

}  // namespace gantry::fence
