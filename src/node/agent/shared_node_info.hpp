// SPDX-License-Identifier: Apache-2.0
// The node's GPUs in shares, as the scheduler, `gantry inspect` and HAMi's tools read them.
#pragma once

#include "cluster/podspec/node.hpp"
#include "container/grants/grants.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/inventory.hpp"
#include "node/agent/shared_gpu_reporter.hpp"
#include "node/resources/resources.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

podspec::NodeInfo shared_node_info(const std::string& node, const model::Inventory& inventory,
                                   const resources::Offer& offer,
                                   const std::vector<model::DeviceHealth>& health);

// hami.io/node-nvidia-register
std::string hami_register(const podspec::NodeInfo& facts);

// What the Node object shall say of them; without GPUs in shares: nothing of all that.
NodeReport shared_node_report(const podspec::NodeInfo& facts);

// Tokens are on no GPU: for metrics a container with a share has the GPUs of its grant, as if it
// had replicas of them.
std::vector<model::DeviceAllocation> holders_by_gpu(std::vector<model::DeviceAllocation> holders,
                                                    const std::vector<grants::GrantFile>& granted);

}  // namespace gantry::agent
