// SPDX-License-Identifier: Apache-2.0
// A command as our child, as if it had been started without us: it has the terminal, gets the
// signals, and its exit status is ours. It does not outlive us, and what it started does not
// outlive it: daemons and background jobs of a share would go on without one.
#pragma once

#include "base/core/result.hpp"

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gantry::fence_mount {

struct ChildCommand {
  std::vector<std::string> words;  // the first is found in PATH
  // In the child, before the command: its mounts, its environment. An error ends it.
  std::function<Status()> before;
  // Here, when the child is there and has done nothing yet. An error ends it.
  std::function<Status(pid_t child)> started;
};

// Its exit status, 128 + the signal that ended it, 126 where it cannot be executed and 127 where it
// is not there, as shells have it. An error is one of `before` or `started`. Call it from a process
// with one thread.
Result<int> run(const ChildCommand& command);

}  // namespace gantry::fence_mount
