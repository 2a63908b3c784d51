// SPDX-License-Identifier: Apache-2.0
#include "node/agent/worker.hpp"

#include <utility>

namespace gantry::agent {

Worker::Worker()
    : task_({.name = "worker"}, [this](const std::stop_token& stop) -> Status {
        work(stop);
        return {};
      }) {
  task_.start();
}

void Worker::give(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  task_.wake();
}

void Worker::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::function<void()> job;
    {
      const std::lock_guard lock(mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace gantry::agent
