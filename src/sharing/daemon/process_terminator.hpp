// SPDX-License-Identifier: Apache-2.0
// Ends processes that a policy says must end: first they are asked, then they are not.
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

  // Call it again for as long as there is a reason. `still` is asked with the process held fast by
  // its pidfd: the number must not have become somebody else's meanwhile.
  void stop(pid_t pid, const std::function<bool(pid_t)>& still, Clock::time_point now);
  // Those that were asked and did not go.
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
