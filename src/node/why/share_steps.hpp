// SPDX-License-Identifier: Apache-2.0
// The links of a pod that asks for shares of GPUs: what the API server's objects say in, links out.
// The words about room are the scheduler's own (src/cluster/placement); only share_state_links
// looks around.
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

// What it asks, in words; or why that is nothing that can be asked, and what to write instead.
Step request_step(const Result<std::optional<podspec::PodRequest>>& ask);
std::string describe(const podspec::PodRequest& ask);

// One node, as the scheduler would answer for it.
struct NodeFit {
  placement::NodeView view;
  placement::Fit fit;
  std::string refuses;  // a taint, a selector, a cordon; "" = none
  std::string remedy;   // against that
};

// Why no node was found, then a line for each node that shares GPUs (few of many).
std::vector<Step> share_scheduling_steps(json::Value pod, const podspec::PodRequest& ask,
                                         const std::vector<NodeFit>& node_fits);

// Of a pod on a node: which GPUs it was given, how much of each. `view` is its node's.
Step placement_step(json::Value pod, const podspec::PodRequest& ask,
                    const placement::NodeView& view);

// Of a container on this node: how much of its share it uses, and what it was refused. nullptr: the
// keeper has no share of that name.
Step share_state_step(const std::string& container, const std::string& share,
                      const daemon::ShareState* state);
// The same of every container of the pod that was given a share.
std::vector<Step> share_state_steps(const sys::Host& machine, json::Value pod);

}  // namespace gantry::why
