// SPDX-License-Identifier: Apache-2.0
// Pods, nodes, namespaces, resource quotas and the ConfigMaps that bar GPUs, of the API server into
// the book, from five watches.
#pragma once

#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/logger.hpp"
#include "net/kube/api.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gantry::scheduler {

class ClusterWatcher {
 public:
  ClusterWatcher(const kube::ClientConfig& access, ClusterCache& cache, const Logger& log);
  ~ClusterWatcher();  // stop()
  ClusterWatcher(const ClusterWatcher&) = delete;
  ClusterWatcher& operator=(const ClusterWatcher&) = delete;
  void stop();

  // "pods, nodes": kinds of which no whole list has been read yet; "" when all have. One that we
  // can do without is not waited for when the API server refuses it.
  std::string missing() const;

  struct Kind {
    std::string name;
    bool synced = false;
    std::chrono::milliseconds silence{0};
    std::uint64_t lists = 0;
    std::uint64_t events = 0;
    std::uint64_t failures = 0;
    std::size_t objects = 0;
  };
  std::vector<Kind> kinds() const;

 private:
  class ResourceWatch;
  std::vector<std::unique_ptr<ResourceWatch>> watches_;
};

// Every pod that is on a node, as the API server has it now and not as a watch told a moment ago:
// for a new leader, whose predecessor's last Bindings its watch may not have shown yet.
Status read_bound_pods(kube::Api& api, ClusterCache& cache, TimePoint now);

}  // namespace gantry::scheduler
