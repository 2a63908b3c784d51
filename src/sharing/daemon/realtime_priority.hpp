// SPDX-License-Identifier: Apache-2.0
// The share daemon's scheduling priority. Gates change within milliseconds, so ordinary load of a
// busy machine must not delay the daemon. Without the permission to raise its priority the daemon
// is slower, but still correct.
#pragma once

namespace gantry::daemon {

class RealtimePriority {
 public:
  // Raises the priority of this thread, but not of the processes that it starts.
  static RealtimePriority take();

  // A real-time thread that never sleeps would starve others, and most kernels stop it for 50 ms of
  // each second. So while the thread polls instead of sleeping, it is an ordinary thread with high
  // priority.
  void start_polling();
  void stop_polling();

 private:
  explicit RealtimePriority(bool real_time) : real_time_(real_time), realtime_now_(real_time) {}
  bool real_time_;     // real-time priority is permitted
  bool realtime_now_;  // real-time priority is active now
};

}  // namespace gantry::daemon
