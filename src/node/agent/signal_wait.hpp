// SPDX-License-Identifier: Apache-2.0
// For programs that do a round and sleep: until the next one, or until somebody wants something.
#pragma once

#include "base/core/result.hpp"

#include <signal.h>

#include <chrono>
#include <cstdint>

namespace gantry::agent {

enum class WakeReason : std::uint8_t { Time, Hangup, End };  // SIGHUP; SIGINT, SIGTERM, SIGQUIT

class SignalWait {
 public:
  // The signals are blocked from now on, in this thread and those it makes.
  static Result<SignalWait> make();
  // options::kInfinite: until a signal.
  WakeReason wait(std::chrono::milliseconds time) const;

 private:
  sigset_t signals_{};
};

}  // namespace gantry::agent
