// SPDX-License-Identifier: Apache-2.0
// The keeper's place before others on the processor. Gates change in milliseconds: nothing that is
// usual on a busy machine may stand before it. What is not allowed is not needed to be right, only
// to be quick.
#pragma once

namespace gantry::daemon {

class Precedence {
 public:
  // Of this thread, and of what it starts not.
  static Precedence take();

  // A real-time thread that never sleeps would starve others, and most kernels stop it for 50 ms of
  // each second. So while it looks instead of sleeping it is an ordinary one of high priority.
  void look_on();
  void sleep_between();

 private:
  explicit Precedence(bool real_time) : real_time_(real_time), before_others_(real_time) {}
  bool real_time_;      // is allowed
  bool before_others_;  // is so now
};

}  // namespace gantry::daemon
