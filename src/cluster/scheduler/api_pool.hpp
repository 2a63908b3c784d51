// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/kube/api.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace gantry::scheduler {

// Connections to the API server for several threads: each call uses one alone and returns it.
class ApiPool {
 public:
  ApiPool(kube::ClientConfig access, std::chrono::milliseconds timeout)
      : access_(std::move(access)), timeout_(timeout) {}

  template <class Impl>
  auto with(Impl&& work) {
    auto api = take();
    auto result = work(*api);
    give(std::move(api));
    return result;
  }

 private:
  std::unique_ptr<kube::Api> take();
  void give(std::unique_ptr<kube::Api> api);

  kube::ClientConfig access_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<kube::Api>> idle_;
};

}  // namespace gantry::scheduler
