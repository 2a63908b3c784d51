// SPDX-License-Identifier: Apache-2.0
// Work on the GPU, in a process of its own: a driver that hangs or a fault that ends all CUDA work
// of a process must not take the page with it.
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
  int status = 0;      // exit status; 128 + signal when it was killed
  bool hung = false;   // the deadline passed
  std::string output;  // stdout and stderr as they came, at most 64 KiB
  std::chrono::milliseconds took{0};
};

class Jobs {
 public:
  using Done = std::function<void(const JobResult&)>;

  explicit Jobs(sys::Loop& loop) : loop_(loop) {}
  // Kills what still runs.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Runs a program, found in PATH. `done` is called once, in the loop. A program that is stuck in
  // the driver, where no signal reaches it, is collected whenever it ends.
  Status start(const std::vector<std::string>& argv, std::chrono::milliseconds deadline, Done done);

 private:
  struct Job {
    pid_t pid = 0;
    sys::UniqueFd output;
    std::chrono::milliseconds deadline{0};
    Done done;  // empty: it has been called
    JobResult result;
    std::chrono::steady_clock::time_point started;
  };
  void poll();

  sys::Loop& loop_;
  std::list<Job> jobs_;
  sys::Loop::Timer timer_;
};

}  // namespace gantry::workload
