// SPDX-License-Identifier: Apache-2.0
// Keeps the scheduler cache up to date with five watches: pods, nodes, namespaces, resource quotas
// and the ConfigMaps that mark GPUs as unhealthy.
#pragma once

#include "base/log/log.hpp"
#include "cluster/scheduler/cluster_cache.hpp"
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
  ClusterWatcher(const kube::ClientConfig& access, ClusterCache& cache, const Log& log);
  ~ClusterWatcher();  // calls stop()
  ClusterWatcher(const ClusterWatcher&) = delete;
  ClusterWatcher& operator=(const ClusterWatcher&) = delete;
  void stop();

  // "pods, nodes": the resources of which no full list has been read yet; "" if all have been read.
  // Does not wait for an optional resource that the API server refuses.
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

// Reads every pod that is on a node from the API server, not from the watch: for a new leader,
// whose watch may not have shown the last Bindings of its predecessor yet.
Status read_bound_pods(kube::Api& api, ClusterCache& cache, TimePoint now);

}  // namespace gantry::scheduler
