// SPDX-License-Identifier: Apache-2.0
// Memory that no ledger counts: contexts, modules, workspaces of libraries, local memory. Only the
// host can measure it. It does so several times a second, and on request.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// UINT64_MAX if the result is not representable.
inline uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// Only slots below this number may use memory.
uint32_t slots();

// For the whole share: the host's last measurement, plus an estimate for contexts that it has not
// measured.
uint64_t overhead(uint32_t gpu);

// Something was loaded, so the host's last measurement is outdated.
void overhead_changed(uint32_t gpu);

// True if the host's measurement is outdated and this thread should wait for a new one. A process
// waits only now and then, even if its share is nearly full all the time.
bool is_reading_due(uint32_t gpu);

// Asks the host to measure, and waits until it has done so after `since`. Returns after a short
// time even without an answer.
void wait_for_reading(uint32_t gpu, uint64_t since);
// Waits until the host has measured every context. False if it already had.
bool wait_for_contexts(uint32_t gpu);
// For callers that report the free memory.
void refresh_if_due(uint32_t gpu);

// Call this in the child of a fork.
void reset_overhead_after_fork();

}  // namespace gantry::fence
