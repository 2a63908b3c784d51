// SPDX-License-Identifier: Apache-2.0
// Explains why a pod is on its node or on none: one line for each node.
#pragma once

#include "base/core/object_ref.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/scheduler/cluster_cache.hpp"

#include <string>
#include <vector>

namespace gantry::scheduler {

struct NodeReason {
  std::string node;
  bool fits = false;
  int score = 0;
  bool resolvable = false;  // could fit after other pods have left
  std::string sentence;     // "" if it fits
};

struct PodReasons {
  PodRef pod;
  std::string on_node;  // its node; "": none yet
  std::string problem;  // the request is not valid; then `nodes` is empty
  std::string room;     // what is being done to make room for it, or why nothing is; "": nothing
  std::vector<NodeReason> nodes;
};

// Nodes that fit come first, by score, then resolvable ones, then the others; equal ones by name.
PodReasons explain_pod(const ClusterCache& cache, const podspec::PodRequest& ask);

std::string to_json(const PodReasons& reasons);
std::string to_text(const PodReasons& reasons);

}  // namespace gantry::scheduler
