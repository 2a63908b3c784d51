// SPDX-License-Identifier: Apache-2.0
#include "node/agent/current_offer.hpp"

namespace gantry::agent {

Result<std::shared_ptr<const CurrentOffer>> make_current_offer(
    model::Inventory inventory, resources::Offer offer, const options::Options& options,
    const resources::AllocatorOptions& setting) {
  GANTRY_TRY(auto answers, resources::Allocator::make(inventory, options, offer, setting));
  std::map<std::string, resources::PreferredAllocation, std::less<>> preferences;
  for (const auto& resource : offer.resources)
    preferences.emplace(resource.name,
                        resources::PreferredAllocation(inventory, resource, options.shared_policy));
  return std::make_shared<const CurrentOffer>(CurrentOffer{
      std::move(inventory), std::move(offer), std::move(answers), std::move(preferences)});
}

}  // namespace gantry::agent
