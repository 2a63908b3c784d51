// SPDX-License-Identifier: Apache-2.0
// The shared GPUs of the node in the form that the scheduler, `gantry inspect` and HAMi's tools
// read.
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

// The value of the annotation hami.io/node-nvidia-register.
std::string hami_register(const podspec::NodeInfo& facts);

// What the Node object must say about the shared GPUs. If there are none, the report removes all
// entries.
NodeReport shared_node_report(const podspec::NodeInfo& facts);

// For metrics: tokens do not belong to a GPU, so a container with a share is shown with the GPUs of
// its grant, as if it had replicas of them.
std::vector<model::DeviceAllocation> holders_by_gpu(std::vector<model::DeviceAllocation> holders,
                                                    const std::vector<grants::GrantFile>& granted);

}  // namespace gantry::agent
