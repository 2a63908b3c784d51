// SPDX-License-Identifier: Apache-2.0
// The cluster's shared GPUs as the API server's lists show them, for people who ask once: the
// scheduler's own book, filled by the same functions, so that nobody counts in another way than it.
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
  std::vector<std::string> notes;  // objects that could not be read, each in a sentence

  std::vector<placement::NodeView> views() const;  // nodes with shared GPUs, by name
};

using OnNode = std::function<void(json::Value node)>;

// All nodes and the pods that hold something, or one node and its pods; and, where they may be
// read, the ConfigMaps that bar cards. NotFound where there is no
// such node; Denied, with the rights that are missing.
Result<ClusterSnapshot> read_cluster(const kube::GetPage& get, const std::string& node = "",
                                     const OnNode& on_node = {});

// The namespace's quotas; without the right to read them there are none.
void add_quotas(ClusterSnapshot& survey, const kube::GetPage& get, const std::string& name_space);

}  // namespace gantry::scheduler
