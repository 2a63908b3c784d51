// SPDX-License-Identifier: Apache-2.0
// The steps of a pod that asks for shares of GPUs, from objects of the API server. The sentences
// about room are the scheduler's own (src/cluster/placement). Only share_state_steps reads the
// machine.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "cluster/placement/cluster.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"
#include "node/why/explanation.hpp"
#include "sharing/daemon/share_state.hpp"

#include <string>
#include <vector>

namespace gantry::why {

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

// For a pod on a node: which GPUs it has and how much of each. `view` is the view of its node.
Step placement_step(json::Value pod, const podspec::PodRequest& ask,
                    const placement::NodeView& view);

// For a container on this node: how much of its share it uses, and which allocations failed.
// nullptr: the share daemon has no share of that name.
Step share_state_step(const std::string& container, const std::string& share,
                      const daemon::ShareState* state);
// The same for every container of the pod that has a share.
std::vector<Step> share_state_steps(const sys::Host& machine, json::Value pod);

}  // namespace gantry::why
