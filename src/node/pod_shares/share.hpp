// SPDX-License-Identifier: Apache-2.0
// Converts a slot to a share of the share daemon, and to the environment of its container.
#pragma once

#include "base/core/result.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"
#include "gpu/model/gpu_share.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/policy/share.hpp"

#include <string>
#include <vector>

namespace gantry::pod_shares {

// Unsupported if the share daemon cannot express it: different amounts on the cards that are not
// the same percentage of each card.
Result<policy::Share> share_for(const std::string& name, const podspec::PodRequest& ask,
                                const podspec::ContainerRequest& container,
                                const std::vector<model::GpuShare>& parts);

// Creates the share, or updates the share of that name: a container that restarts keeps its share.
// Busy if processes of an earlier container still use the name, or if other shares leave no room.
Status ensure_share(daemon::Client& client, const policy::Share& wanted);

// Removes the share. Busy if processes use it. No error if it does not exist.
Status end_share(daemon::Client& client, const std::string& name);

// Variables that programs of gpushare and HAMi users read. They only inform; the fence enforces the
// limits.
std::vector<std::string> environment_of(const podspec::PodRequest& ask,
                                        const podspec::Placement& placement,
                                        const std::vector<model::GpuShare>& parts,
                                        const podspec::NodeInfo& node);

}  // namespace gantry::pod_shares
