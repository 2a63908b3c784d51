// SPDX-License-Identifier: Apache-2.0
// Pods that work only together: the indexes of an Indexed Job, the pods of a JobSet, a TFJob or a
// RayCluster. One that waits for a GPU holds up all others, which keep their GPUs meanwhile. Pure.
#pragma once

#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gantry::explain {

struct PodGroup {
  std::string kind;   // "Job"
  std::string name;   // "train"
  std::string label;  // by which its pods are found: "batch.kubernetes.io/job-name"
  std::string name_space;

  bool has(json::Value pod) const;
};

// nullopt: the pod works alone.
std::optional<PodGroup> group_of(json::Value pod);

struct GroupState {
  std::size_t running = 0;
  std::size_t pods = 0;              // that have not ended
  std::vector<std::string> waiting;  // "default/train-3-x7k2p": without a node
};
// A list comes in pages.
void count_group(GroupState& state, const PodGroup& group, json::Value pods);

// What the pod holds up if it waits itself, or which pod of its group it waits for. nullopt: all
// pods of the group have a node.
std::optional<Step> group_step(json::Value pod, const PodGroup& group, const GroupState& state);

}  // namespace gantry::explain
