// SPDX-License-Identifier: Apache-2.0
// One thread that runs the tasks it is given, one after the other.
#pragma once

#include "base/sys/background_task.hpp"

#include <deque>
#include <functional>
#include <mutex>

namespace gantry::agent {

class Worker {
 public:
  Worker();
  ~Worker() = default;  // finishes the current task and drops the others
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void give(std::function<void()> job);

 private:
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::deque<std::function<void()>> jobs_;
  sys::BackgroundTask task_;  // last: it uses everything above
};

}  // namespace gantry::agent
