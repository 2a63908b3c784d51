// SPDX-License-Identifier: Apache-2.0
// One thread that runs the tasks it is given, one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace gantry::agent {

class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker();  // finishes the current task and drops the others
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void give(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace gantry::agent
