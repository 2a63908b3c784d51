// SPDX-License-Identifier: Apache-2.0
// A slot as a share of the keeper's, and as what its container sees.
#pragma once

#include "base/core/result.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/policy/share.hpp"

#include <string>
#include <vector>

namespace gantry::pod_shares {

// Unsupported where the keeper has no words for it: different amounts on its cards that are no per
// cent of each.
Result<policy::ShareText> share_text(const std::string& name, const podspec::PodRequest& ask,
                                     const podspec::ContainerRequest& container,
                                     const std::vector<podspec::GpuAllocation>& parts);

// Makes the share, or gives the one of that name what it shall have: a container that starts again
// keeps its own. Busy where processes of an earlier container still have the name, or where other
// shares leave no room.
Status ensure_share(daemon::Client& keeper, const policy::ShareText& wanted);

// Removes it unless processes have it: Busy. One that is not there is fine.
Status end_share(daemon::Client& keeper, const std::string& name);

// Variables that programs of gpushare's and HAMi's users read. They inform; the fence holds.
std::vector<std::string> environment_of(const podspec::PodRequest& ask,
                                        const podspec::Placement& placement,
                                        const std::vector<podspec::GpuAllocation>& parts,
                                        const podspec::NodeInfo& node);

}  // namespace gantry::pod_shares
