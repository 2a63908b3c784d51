// SPDX-License-Identifier: Apache-2.0
// Starts another program without copying our memory. May be called from a process with threads.
#pragma once

#include "base/core/result.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace gantry::sys {

inline constexpr int kSpawnedDescriptor = 3;

// Runs argv[0], a path, with `descriptor` as its descriptor 3. It gets its own process group,
// default signals and our environment. Fails with the errno of execve. `program`, not -1: a
// descriptor of the file to run, which is not looked up again; it needs /proc, and cannot be a
// script. The kernel calls the process by the descriptor's number until it names itself.
Result<pid_t> spawn(const std::vector<std::string>& argv, int descriptor, int program = -1);

// How a process ended, as waitpid told it: "crashed: Segmentation fault", "ended with status 1".
std::string describe_exit(int status);

// nullopt while it runs. A child that was already waited for elsewhere counts as exited with 0.
std::optional<int> reap(pid_t pid);

}  // namespace gantry::sys
