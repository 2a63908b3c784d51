// SPDX-License-Identifier: Apache-2.0
// This process's work on a GPU that has not ended.
#pragma once

#include <stdint.h>

namespace gantry::fence {

struct OutstandingWork {
  uint64_t launches = 0;
  uint64_t expected_ns = 0;  // until all has ended, by the learned costs
  bool entering = false;     // a thread is entering the driver

  bool none() const { return launches == 0 && !entering; }
};

enum class UnmarkedLaunches : uint8_t {
  Leave,
  Mark,  // launches after the last mark get a new mark, so that their end is noticed
};

OutstandingWork outstanding(uint32_t gpu, UnmarkedLaunches tails);
// The number of launches so far; if it changes, a thread is launching.
uint64_t launches_begun(uint32_t gpu);
// True if all work that began is known to have ended. Does not call the driver.
bool all_seen_to_end(uint32_t gpu);

}  // namespace gantry::fence
