// SPDX-License-Identifier: Apache-2.0
// The pods of this node that ask for shared GPUs, from the API server. Written by the thread of the
// informer, read by other threads.
#pragma once

#include "base/json/document.hpp"
#include "net/kube/informer.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gantry::pod_shares {

class PodCache : public kube::ResourceEventHandler {
 public:
  using OnError = std::function<void(const Error&, std::chrono::milliseconds retry_in)>;
  explicit PodCache(OnError on_error = nullptr) : trouble_(std::move(on_error)) {}

  void set(const json::Document& pod) override;
  void remove(const ObjectRef& pod) override;
  void listed() override;
  void on_error(const Error& error, std::chrono::milliseconds retry_in) override;

  // The pod as JSON. nullopt: it does not exist, asks for nothing, or has ended.
  std::optional<std::string> find(const std::string& uid) const;
  std::vector<std::string> all() const;
  bool complete() const;  // a whole list has been read, so a pod that is not in it does not exist

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> pods_;  // by uid
  bool complete_ = false;
  OnError trouble_;
};

}  // namespace gantry::pod_shares
