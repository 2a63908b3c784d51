// SPDX-License-Identifier: Apache-2.0
// The cluster's shared GPUs, read once from lists of the API server, for commands. Uses the
// scheduler cache and the same functions, so that the numbers match the scheduler's.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/placement/cluster.hpp"
#include "cluster/scheduler/cluster_cache.hpp"
#include "net/kube/pages.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::scheduler {

struct ClusterSnapshot {
  std::unique_ptr<scheduler::ClusterCache> cache;
  std::vector<std::string> notes;  // objects that could not be read, one sentence each

  std::vector<placement::NodeView> views() const;  // nodes with shared GPUs, by name
};

using OnNode = std::function<void(json::Value node)>;

// Reads all nodes and the pods that hold something, or one node and its pods; and the ConfigMaps
// that mark cards as unhealthy, if they may be read. NotFound if there is no such node; Denied,
// with the missing permissions.
Result<ClusterSnapshot> read_cluster(const kube::GetPage& get, const std::string& node = "",
                                     const OnNode& on_node = {});

// Adds the namespace's quotas; none without the permission to read them.
void add_quotas(ClusterSnapshot& survey, const kube::GetPage& get, const std::string& name_space);

}  // namespace gantry::scheduler
