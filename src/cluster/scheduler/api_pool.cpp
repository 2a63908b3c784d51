// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/api_pool.hpp"

namespace gantry::scheduler {

std::unique_ptr<kube::Api> ApiPool::take() {
  const std::lock_guard hold(mutex_);
  if (idle_.empty()) return std::make_unique<kube::Api>(access_, timeout_);
  auto api = std::move(idle_.back());
  idle_.pop_back();
  return api;
}

void ApiPool::give(std::unique_ptr<kube::Api> api) {
  const std::lock_guard hold(mutex_);
  idle_.push_back(std::move(api));
}

}  // namespace gantry::scheduler
