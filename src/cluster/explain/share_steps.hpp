// SPDX-License-Identifier: Apache-2.0
// The steps of a pod that asks for shares of GPUs, from objects of the API server. The sentences
// about room are the scheduler's own (src/cluster/placement).
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/explain/explanation.hpp"
#include "cluster/placement/cluster.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"

#include <string>
#include <vector>

namespace gantry::explain {

// Describes the request, or says why it is not valid and what to write instead.
Step request_step(const Result<std::optional<podspec::PodRequest>>& ask);
std::string describe(const podspec::PodRequest& ask);

// One node with the scheduler's answer for it.
struct NodeFit {
  placement::NodeView view;
  placement::Fit fit;
  std::string refuses;  // a taint, a selector or a cordon; "": none
  std::string remedy;   // for that rejection
};

// Says why no node was found, then one step for each node that shares GPUs (at most a few).
std::vector<Step> share_scheduling_steps(json::Value pod, const podspec::PodRequest& ask,
                                         const std::vector<NodeFit>& node_fits);
bool has_shared_gpus(const std::vector<NodeFit>& node_fits);  // if any node has

// For a pod on a node: which GPUs it has and how much of each. `view` is the view of its node.
Step placement_step(json::Value pod, const podspec::PodRequest& ask,
                    const placement::NodeView& view);

}  // namespace gantry::explain
