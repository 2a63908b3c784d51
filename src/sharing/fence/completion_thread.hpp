// SPDX-License-Identifier: Apache-2.0
// A thread of ours for each GPU that the process uses while its time is limited: it sees the end of
// work that nobody waits for, and the end of a turn.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// Made at the first launch; rung when it sleeps.
void wake_completion_thread(uint32_t gpu);
// In the child of a fork it does not exist.
void reset_completion_threads_after_fork();

enum class PollUrgency : uint8_t {
  None,   // the queue is full: it will not run dry while we sleep
  Urgent  // the GPU has nothing to do, or somebody else waits for it, until we see the end
};

// Until the next look at work of which so much is expected to be left.
class CompletionPoller {
 public:
  explicit CompletionPoller(PollUrgency haste) : haste_(haste) {}
  void wait(uint64_t expected_ns);

 private:
  PollUrgency haste_;
  uint64_t since_ns_ = 0;
};

}  // namespace gantry::fence
