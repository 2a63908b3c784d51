// SPDX-License-Identifier: Apache-2.0
// Ends processes that a policy says must end: first with SIGTERM, later with SIGKILL.
#pragma once

#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

namespace gantry::daemon {

class ProcessTerminator {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ProcessTerminator(std::chrono::milliseconds timeout = std::chrono::seconds(2))
      : timeout_(timeout) {}

  // Call it again for as long as the reason persists. `still` is called while the pidfd is open, so
  // that the pid cannot belong to another process.
  void stop(pid_t pid, const std::function<bool(pid_t)>& still, Clock::time_point now);
  // Kills the processes that still run after the timeout.
  void on_heartbeat(Clock::time_point now);

 private:
  struct PendingKill {
    sys::UniqueFd pidfd;
    Clock::time_point since;
  };
  std::chrono::milliseconds timeout_;
  std::map<pid_t, PendingKill> asked_;
};

}  // namespace gantry::daemon
