// SPDX-License-Identifier: Apache-2.0
// The steps about a pod's shares that can be checked only on its node: the share daemon knows them.
#pragma once

#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "cluster/explain/explanation.hpp"
#include "sharing/daemon/share_state.hpp"

#include <string>
#include <vector>

namespace gantry::why {

// How much of its share a container uses, and which allocations failed. nullptr: the share daemon
// has no share of that name.
explain::Step share_state_step(const std::string& container, const std::string& share,
                               const daemon::ShareState* state);

// The same for every container of the pod that has a share.
std::vector<explain::Step> share_state_steps(const sys::Host& machine, json::Value pod);

}  // namespace gantry::why
