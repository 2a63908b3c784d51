// SPDX-License-Identifier: Apache-2.0
// Keeps the report about this node's shared GPUs in the Node object up to date. It checks
// regularly, because a kubelet that restarts sets resources to 0 if no device plugin offers them.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/background_task.hpp"
#include "net/kube/api.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace gantry::agent {

// Key to value; nullopt: the key must not exist.
using OptionalEntries = std::map<std::string, std::optional<std::string>>;

struct NodeReport {
  OptionalEntries annotations;
  OptionalEntries labels;
  OptionalEntries capacity;  // also used for allocatable
  bool operator==(const NodeReport&) const = default;
};

// Merge patches for the differences; "": there are none.
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
  SharedGpuReporter(const SharedGpuReporter&) = delete;
  SharedGpuReporter& operator=(const SharedGpuReporter&) = delete;

  void set_report(NodeReport report);

 private:
  Status work();
  Status look(const NodeReport& wanted);

  kube::Api api_;
  Options options_;
  Log log_;
  std::mutex mutex_;
  std::optional<NodeReport> wanted_;
  sys::BackgroundTask task_;  // last: it uses everything above
};

}  // namespace gantry::agent
