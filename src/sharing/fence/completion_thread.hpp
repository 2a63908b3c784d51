// SPDX-License-Identifier: Apache-2.0
// One thread of the fence for each GPU that the process uses while its time is limited. It notices
// the end of work that the program does not wait for, and the end of a turn.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// Starts the thread at the first launch; wakes it if it sleeps.
void wake_completion_thread(uint32_t gpu);
// Call this in the child of a fork, where the thread does not exist.
void reset_completion_threads_after_fork();

enum class PollUrgency : uint8_t {
  None,   // the queue is full and does not run dry while the thread sleeps
  Urgent  // the GPU idles, or another share waits for it, until the thread notices the end
};

// The time until the next check of work that is expected to take this much longer.
class CompletionPoller {
 public:
  explicit CompletionPoller(PollUrgency haste) : haste_(haste) {}
  void wait(uint64_t expected_ns);

 private:
  PollUrgency haste_;
  uint64_t since_ns_ = 0;
};

}  // namespace gantry::fence
