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
// default signals and our environment. Fails with the errno of execve.
Result<pid_t> spawn(const std::vector<std::string>& argv, int descriptor);

// How a process ended, as waitpid told it: "crashed: Segmentation fault", "ended with status 1".
std::string describe_exit(int status);

// nullopt while it runs. A child that was already waited for elsewhere counts as exited with 0.
std::optional<int> reap(pid_t pid);

}  // namespace gantry::sys
