// SPDX-License-Identifier: Apache-2.0
// Starts and ends the child without waiting for it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gantry::nvml_child {

struct ChildProcess {
  pid_t pid = -1;
  sys::UniqueFd socket;  // non-blocking, SOCK_SEQPACKET
};

// posix_spawn: no memory is copied, and it may be called from a process with threads. The child
// gets its own process group, default signals and our environment.
Result<ChildProcess> start_process(const std::vector<std::string>& argv);
void set_oom_score_adj(pid_t pid, int value);  // as far as we are permitted

// How a process ended, as waitpid told it: "crashed: Segmentation fault", "ended with status 1".
std::string describe_exit(int status);

// nullopt while it runs. A child that was already waited for elsewhere counts as exited with 0.
std::optional<int> reap(pid_t pid);

}  // namespace gantry::nvml_child
