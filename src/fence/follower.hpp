// SPDX-License-Identifier: Apache-2.0
// A thread of ours for each GPU that the process uses while its time is limited: it sees the end of
// work that nobody waits for, and the end of a turn.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// Made at the first launch; rung when it sleeps.
void wake_follower(uint32_t gpu);
// In the child of a fork it does not exist.
void forget_followers();

// Until the next look at work of which so much is expected to be left. Sleeps where that is long,
// spins where somebody waits for its end.
class Lookout {
 public:
  void wait(uint64_t expected_ns);

 private:
  uint64_t spinning_since_ns_ = 0;
};

}  // namespace gantry::fence
