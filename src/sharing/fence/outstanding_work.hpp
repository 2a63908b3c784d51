// SPDX-License-Identifier: Apache-2.0
// What of this process's work on a GPU has not ended.
#pragma once

#include <stdint.h>

namespace gantry::fence {

struct OutstandingWork {
  uint64_t launches = 0;
  uint64_t expected_ns = 0;  // until all has ended, by what was learned
  bool entering = false;     // a thread is on its way into the driver

  bool none() const { return launches == 0 && !entering; }
};

enum class UnmarkedLaunches : uint8_t {
  Leave,
  Mark,  // launches behind the last mark get one of their own, so that their end can be seen
};

OutstandingWork outstanding(uint32_t gpu, UnmarkedLaunches tails);
// Launches so far: a changed number means that somebody launches.
uint64_t launches_begun(uint32_t gpu);
// Whether nothing has begun that has not been seen to end. No question to the driver.
bool all_seen_to_end(uint32_t gpu);

}  // namespace gantry::fence
