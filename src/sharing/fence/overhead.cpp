// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/overhead.hpp"

#include "gpu/abi/fence.h"
#include "sharing/fence/daemon_link.hpp"

namespace gantry::fence {
namespace {

constexpr uint64_t kFreshNs = 5000000;
constexpr uint64_t kBetweenWaitsNs = 50000000;
constexpr uint64_t kWaitNs = 20000000;
constexpr uint64_t kContextWaitNs = 60000000;  // a new context is not visible at once
constexpr uint64_t kStepNs = 200000;

struct MeasurementTimes {
  uint64_t waited_ns;  // when a thread last waited for a measurement
  uint64_t changed_ns[FENCE_MAX_GPUS];
};
constinit MeasurementTimes looks{};

bool is_free() {
  return (__atomic_load_n(&limits().flags, __ATOMIC_RELAXED) & FENCE_CONTEXT_FREE) != 0;
}

uint64_t reading_ns(uint32_t gpu) {
  return __atomic_load_n(&limits().gpu[gpu].reading_ns, __ATOMIC_ACQUIRE);
}

uint32_t unseen_contexts(uint32_t gpu, uint32_t slot) {
  const uint32_t made = __atomic_load_n(&row(gpu, slot).contexts, __ATOMIC_SEQ_CST);
  if (made == 0) return 0;
  const uint32_t seen =
      __atomic_load_n(&limits().process[slot].seen_contexts[gpu], __ATOMIC_ACQUIRE);
  return made > seen ? made - seen : 0;
}

// True if the host has not yet measured a context.
bool estimating(uint32_t gpu) {
  for (uint32_t slot = 0, end = slots(); slot < end; ++slot) {
    if (unseen_contexts(gpu, slot) != 0) return true;
  }
  return false;
}

bool is_old(uint32_t gpu, uint64_t now) {
  const uint64_t looked = reading_ns(gpu);
  return looked + kFreshNs < now ||
         looked < __atomic_load_n(&looks.changed_ns[gpu], __ATOMIC_RELAXED);
}

}  // namespace

uint32_t slots() {
  const uint32_t used = __atomic_load_n(&limits().slots_in_use, __ATOMIC_ACQUIRE);
  constexpr uint32_t kMaxSlots = FENCE_MAX_PROCESSES;
  return used < kMaxSlots ? used : kMaxSlots;
}

uint64_t overhead(uint32_t gpu) {
  if (is_free()) return 0;
  const FenceGpuLimits& values = limits().gpu[gpu];
  const uint64_t estimate = __atomic_load_n(&values.context_estimate, __ATOMIC_RELAXED);
  uint64_t total = __atomic_load_n(&values.memory_overhead, __ATOMIC_ACQUIRE);
  for (uint32_t slot = 0, end = slots(); slot < end; ++slot)
    total = saturating_add(total, estimate * unseen_contexts(gpu, slot));
  return total;
}

void overhead_changed(uint32_t gpu) {
  if (!attached() || gpu >= host.gpu_count) return;
  __atomic_store_n(&looks.changed_ns[gpu], monotonic_ns(), __ATOMIC_RELAXED);
  report(FENCE_CONTEXT, gpu, 0, 0);
}

bool is_reading_due(uint32_t gpu) {
  if (is_free() || is_daemon_stale()) return false;
  const uint64_t now = monotonic_ns();
  if (!is_old(gpu, now)) return false;
  uint64_t last = __atomic_load_n(&looks.waited_ns, __ATOMIC_RELAXED);
  return now - last > kBetweenWaitsNs &&
         __atomic_compare_exchange_n(&looks.waited_ns, &last, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED);
}

void wait_for_reading(uint32_t gpu, uint64_t since) {
  if (is_free() || reading_ns(gpu) >= since || is_daemon_stale()) return;
  report(FENCE_CONTEXT, gpu, 0, 0);
  const uint64_t until = monotonic_ns() + kWaitNs;
  while (reading_ns(gpu) < since && monotonic_ns() < until) sleep_for_ns(kStepNs);
}

bool wait_for_contexts(uint32_t gpu) {
  if (!estimating(gpu)) return false;
  report(FENCE_CONTEXT, gpu, 0, 0);
  const uint64_t until = monotonic_ns() + kContextWaitNs;
  while (estimating(gpu) && monotonic_ns() < until) sleep_for_ns(kStepNs);
  return true;
}

void refresh_if_due(uint32_t gpu) {
  if (attached() && gpu < host.gpu_count && is_reading_due(gpu))
    wait_for_reading(gpu, monotonic_ns());
}

void reset_overhead_after_fork() {
  looks = {};
}

}  // namespace gantry::fence
