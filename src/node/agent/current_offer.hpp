// SPDX-License-Identifier: Apache-2.0
// What the node offers now, with everything that is needed to answer the kubelet from memory. It
// never changes; a new one is made when the machine or the configuration changes.
#pragma once

#include "base/core/result.hpp"
#include "node/resources/allocator.hpp"
#include "node/resources/preferred_allocation.hpp"
#include "node/resources/resources.hpp"

#include <map>
#include <memory>
#include <string>

namespace gantry::agent {

struct CurrentOffer {
  model::Inventory inventory;
  resources::Offer offer;
  resources::Allocator answers;
  std::map<std::string, resources::PreferredAllocation, std::less<>> preferences;  // by resource
};

Result<std::shared_ptr<const CurrentOffer>> make_current_offer(
    model::Inventory inventory, resources::Offer offer, const options::Options& options,
    const resources::AllocatorOptions& setting);

}  // namespace gantry::agent
