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

class Stopper {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Stopper(std::chrono::milliseconds patience = std::chrono::seconds(2))
      : patience_(patience) {}

  // Call it again for as long as there is a reason. `still` is asked with the process held fast by
  // its pidfd: the number must not have become somebody else's meanwhile.
  void stop(pid_t pid, const std::function<bool(pid_t)>& still, Clock::time_point now);
  // Those that were asked and did not go.
  void on_beat(Clock::time_point now);

 private:
  struct Asked {
    sys::UniqueFd pidfd;
    Clock::time_point since;
  };
  std::chrono::milliseconds patience_;
  std::map<pid_t, Asked> asked_;
};

}  // namespace gantry::daemon
