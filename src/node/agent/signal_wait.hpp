// SPDX-License-Identifier: Apache-2.0
// For programs that work in rounds: sleeps until the next round or until a signal arrives.
#pragma once

#include "base/core/result.hpp"

#include <signal.h>

#include <chrono>
#include <cstdint>

namespace gantry::agent {

enum class WakeReason : std::uint8_t {
  Time,
  Hangup,
  End
};  // Hangup: SIGHUP; End: SIGINT, SIGTERM or SIGQUIT

class SignalWait {
 public:
  // Blocks the signals from now on, in this thread and in threads that it creates.
  static Result<SignalWait> make();
  // With options::kInfinite, waits until a signal arrives.
  WakeReason wait(std::chrono::milliseconds time) const;

 private:
  sigset_t signals_{};
};

}  // namespace gantry::agent
