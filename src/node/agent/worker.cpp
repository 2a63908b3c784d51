// SPDX-License-Identifier: Apache-2.0
#include "node/agent/worker.hpp"

#include <utility>

namespace gantry::agent {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::give(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    {
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

}  // namespace gantry::agent
