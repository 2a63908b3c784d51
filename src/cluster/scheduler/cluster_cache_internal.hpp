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
  std::string deletion_time;  // if it is being deleted: when it must be gone, in the API's format
  std::int32_t priority = 0;
  std::uint64_t version = 0;  // metadata.resourceVersion; 0 if that is not a number
  std::size_t digest = 0;     // of everything that affects a decision; most updates do not
  bool counted = false;       // it is in the cluster's state
  bool placed = false;        // and its cards are known
  bool is_static = false;     // a static pod of a kubelet: deleting it in the API does not end it
  bool evictable = false;     // we placed it, and deleting it in the API ends it
  std::unique_ptr<podspec::PodRequest> ask;  // while it has no node
  std::unique_ptr<std::string> text;         // while its placement depends on the cards of its node
};

}  // namespace gantry::scheduler
