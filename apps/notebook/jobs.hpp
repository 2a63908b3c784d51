// SPDX-License-Identifier: Apache-2.0
// Runs GPU work in a separate process, so that the web page survives a driver that hangs or a fault
// that ends all CUDA work of a process.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

namespace gantry::workload {

struct JobResult {
  int status = 0;      // exit status; 128 + signal if it was killed
  bool hung = false;   // the deadline passed
  std::string output;  // stdout and stderr in order, at most 64 KiB
  std::chrono::milliseconds took{0};
};

class Jobs {
 public:
  using Done = std::function<void(const JobResult&)>;

  explicit Jobs(sys::Loop& loop) : loop_(loop) {}
  // Kills jobs that still run.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Runs a program from PATH. Calls `done` once, in the loop. If the program hangs in the driver
  // and does not react to SIGKILL, it is reaped when it ends.
  Status start(const std::vector<std::string>& argv, std::chrono::milliseconds deadline, Done done);

 private:
  struct Job {
    pid_t pid = 0;
    sys::UniqueFd output;
    std::chrono::milliseconds deadline{0};
    Done done;  // empty after it was called
    JobResult result;
    std::chrono::steady_clock::time_point started;
  };
  void poll();

  sys::Loop& loop_;
  std::list<Job> jobs_;
  sys::Loop::Timer timer_;
};

}  // namespace gantry::workload
