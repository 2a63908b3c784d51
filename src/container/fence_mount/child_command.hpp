// SPDX-License-Identifier: Apache-2.0
// Runs a command as our child, as if it were started directly: it has the terminal, gets the
// signals, and its exit status becomes ours. The command ends with us, and its own children end
// with it: otherwise daemons and background jobs would continue without their share.
#pragma once

#include "base/core/result.hpp"

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gantry::fence_mount {

struct ChildCommand {
  std::vector<std::string> words;  // the first one is looked up in PATH
  // Runs in the child before the command: mounts, environment. An error ends the child.
  std::function<Status()> before;
  // Runs in this process after the fork, before the child continues. An error ends the child.
  std::function<Status(pid_t child)> started;
};

// Returns the exit status like a shell: 128 + the signal that ended the command, 126 if it cannot
// be executed, 127 if it does not exist. Errors are those of `before` and `started`. Call it from a
// process with one thread.
Result<int> run(const ChildCommand& command);

}  // namespace gantry::fence_mount
