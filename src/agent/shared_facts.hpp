// SPDX-License-Identifier: Apache-2.0
// The node's GPUs in shares, as the scheduler, `gantry inspect` and HAMi's tools read them.
#pragma once

#include "agent/shares_reporter.hpp"
#include "ask/node.hpp"
#include "model/inventory.hpp"
#include "model/offer.hpp"
#include "offer/resources.hpp"

#include <string>
#include <vector>

namespace gantry::agent {

ask::NodeFacts shared_facts(const std::string& node, const model::Inventory& inventory,
                            const offer::Offer& offer,
                            const std::vector<model::DeviceHealth>& health);

// hami.io/node-nvidia-register
std::string hami_register(const ask::NodeFacts& facts);

// What the Node object shall say of them; without GPUs in shares: nothing of all that.
NodeReport shared_report(const ask::NodeFacts& facts);

}  // namespace gantry::agent
