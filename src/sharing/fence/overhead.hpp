// SPDX-License-Identifier: Apache-2.0
// Memory that no ledger holds: contexts, modules, workspaces of libraries, local memory. Only the
// host sees it, when it looks; it looks several times a second, and when it is asked to.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// UINT64_MAX where that is not representable.
inline uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// Slots of the share below this may hold something.
uint32_t slots();

// Of the whole share: as the host saw it last, and an estimate for contexts it has not seen.
uint64_t overhead(uint32_t gpu);

// Something is loaded: what the host saw before is old.
void overhead_changed(uint32_t gpu);

// Whether what the host saw is old, and it is this thread's turn to wait for a new look. A process
// waits once in a while only, however often it is told that its share is nearly full.
bool is_reading_due(uint32_t gpu);

// Until the host has looked, at a time after `since`; asks it to. Soon goes on without an answer.
void wait_for_reading(uint32_t gpu, uint64_t since);
// Until it has seen every context. False: it had.
bool wait_for_contexts(uint32_t gpu);
// For those who want to know what is left.
void refresh_if_due(uint32_t gpu);

// In the child of a fork.
void reset_overhead_after_fork();

}  // namespace gantry::fence
