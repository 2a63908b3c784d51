// SPDX-License-Identifier: Apache-2.0
// Why a pod is where it is, or nowhere: one line for each node.
#pragma once

#include "cluster/podspec/request.hpp"
#include "cluster/scheduler/cluster_cache.hpp"

#include <string>
#include <vector>

namespace gantry::scheduler {

struct NodeReason {
  std::string node;
  bool fits = false;
  int score = 0;
  bool resolvable = false;  // others leaving could help
  std::string sentence;     // "" where it fits
};

struct PodReasons {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string on_node;  // where it is already; "" = nowhere yet
  std::string problem;  // the ask itself is wrong; no nodes then
  std::string room;     // what is done to make room for it, or why nothing is; "" = nothing
  std::vector<NodeReason> nodes;
};

// Nodes with the best score first, then those that could, then the rest; by name among equals.
PodReasons explain_pod(const ClusterCache& cache, const podspec::PodRequest& ask);

std::string to_json(const PodReasons& reasons);
std::string to_text(const PodReasons& reasons);

}  // namespace gantry::scheduler
