// SPDX-License-Identifier: Apache-2.0
// System calls that the kernel may never finish, such as the load of a module whose device does not
// answer.
#pragma once

#include "base/core/result.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace gantry::sys {

// What the call returned: an errno, or whatever else the caller of call_with_deadline agreed on
// with the function that it hands over.
struct CallOutcome {
  int step = 0;
  int value = 0;
  bool operator==(const CallOutcome&) const = default;
};

// Runs `call` in a process of its own and returns its outcome. `call` may make system calls only,
// because another thread may have held a lock during the fork; everything else must be prepared
// before. Of our descriptors it has only `file`; pass -1 if it needs none. `doing` begins the
// sentence of an error: "the write to /sys/x".
//
// Returns Timeout if the call did not return in time; a process that did not get to run, on a
// machine that is overloaded or was paused, has the time twice. The process stays in the kernel
// until the kernel lets it go: it is not a child of ours, holds none of our locks, and is not
// waited for. A wait that signals can interrupt ends one second after twice the deadline. What the
// call does later cannot be known: look at the machine again before another call. Any thread may
// call it, but it blocks until the deadline: never call it on the agent's loop or under a lock.
Result<CallOutcome> call_with_deadline(const std::function<CallOutcome(int file)>& call, int file,
                                       std::chrono::milliseconds deadline, std::string_view doing);

}  // namespace gantry::sys
