// SPDX-License-Identifier: Apache-2.0
// The node's GPUs in shares, as the scheduler, `gantry inspect` and HAMi's tools read them.
#pragma once

#include "cluster/podspec/node.hpp"
#include "container/grants/grants.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/model/offer.hpp"
#include "node/agent/shares_reporter.hpp"
#include "node/resources/resources.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

podspec::NodeFacts shared_facts(const std::string& node, const model::Inventory& inventory,
                                const resources::Offer& offer,
                                const std::vector<model::DeviceHealth>& health);

// hami.io/node-nvidia-register
std::string hami_register(const podspec::NodeFacts& facts);

// What the Node object shall say of them; without GPUs in shares: nothing of all that.
NodeReport shared_report(const podspec::NodeFacts& facts);

// Tokens are on no GPU: for metrics a container with a share has the GPUs of its grant, as if it
// had replicas of them.
std::vector<model::Holder> on_gpus(std::vector<model::Holder> holders,
                                   const std::vector<grants::Written>& granted);

}  // namespace gantry::agent
