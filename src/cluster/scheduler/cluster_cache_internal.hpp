// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/scheduler/cluster_cache.hpp"

namespace gantry::scheduler {

// A pod that asks for GPUs.
struct ClusterCache::PodRecord {
  std::string name_space;
  std::string name;
  std::string node;           // "": none yet
  std::string nominated;      // the node on which kube-scheduler makes room for it
  std::string deletion_time;  // being deleted: when it shall be gone, as the API writes times
  std::int32_t priority = 0;
  std::uint64_t version = 0;  // metadata.resourceVersion; 0 where that is no number
  std::size_t digest = 0;     // of what a decision depends on; most news are of other things
  bool counted = false;       // the cluster has it
  bool placed = false;        // and knows its cards
  bool is_static = false;     // a kubelet's own: its end in the API ends nothing
  bool evictable = false;     // we placed it, and its end is in the API server's hands
  std::unique_ptr<podspec::PodRequest> ask;  // while it has no node
  std::unique_ptr<std::string> text;  // while where it is on its node depends on the node's cards
};

}  // namespace gantry::scheduler
