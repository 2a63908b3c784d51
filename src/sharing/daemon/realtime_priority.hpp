// SPDX-License-Identifier: Apache-2.0
// The keeper's place before others on the processor. Gates change in milliseconds: nothing that is
// usual on a busy machine may stand before it. What is not allowed is not needed to be right, only
// to be quick.
#pragma once

namespace gantry::daemon {

class RealtimePriority {
 public:
  // Of this thread, and of what it starts not.
  static RealtimePriority take();

  // A real-time thread that never sleeps would starve others, and most kernels stop it for 50 ms of
  // each second. So while it looks instead of sleeping it is an ordinary one of high priority.
  void start_polling();
  void stop_polling();

 private:
  explicit RealtimePriority(bool real_time) : real_time_(real_time), realtime_now_(real_time) {}
  bool real_time_;     // is allowed
  bool realtime_now_;  // is so now
};

}  // namespace gantry::daemon
