// SPDX-License-Identifier: Apache-2.0
// Keeps in the Node object what this node says of its GPUs in shares. It looks again and again: a
// kubelet that starts anew sets resources to 0 that no device plugin offers.
#pragma once

#include "net/kube/api.hpp"
#include "node/agent/log.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace gantry::agent {

// Key to value; nullopt: shall not be there.
using OptionalEntries = std::map<std::string, std::optional<std::string>>;

struct NodeReport {
  OptionalEntries annotations;
  OptionalEntries labels;
  OptionalEntries capacity;  // and allocatable
  bool operator==(const NodeReport&) const = default;
};

// Merge patches for what differs; "": nothing does.
struct NodePatches {
  std::string metadata;
  std::string status;
  bool operator==(const NodePatches&) const = default;
};
NodePatches patches_for(const NodeReport& wanted, const json::Document& node);

class SharedGpuReporter {
 public:
  struct Options {
    std::string node;
    std::chrono::milliseconds look_every{15'000};
  };
  SharedGpuReporter(kube::ClientConfig access, Options options, Log log);
  ~SharedGpuReporter();
  SharedGpuReporter(const SharedGpuReporter&) = delete;
  SharedGpuReporter& operator=(const SharedGpuReporter&) = delete;

  void set_report(NodeReport report);

 private:
  void work();
  Status look(const NodeReport& wanted);

  kube::Api api_;
  Options options_;
  Log log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<NodeReport> wanted_;
  bool changed_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace gantry::agent
