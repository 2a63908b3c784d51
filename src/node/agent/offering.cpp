// SPDX-License-Identifier: Apache-2.0
#include "node/agent/offering.hpp"

namespace gantry::agent {

Result<std::shared_ptr<const Offering>> make_offering(model::Inventory inventory,
                                                      resources::Offer offer,
                                                      const options::Options& options,
                                                      const resources::AnswerSetting& setting) {
  GANTRY_TRY(auto answers, resources::Answers::make(inventory, options, offer, setting));
  std::map<std::string, resources::Preferences, std::less<>> preferences;
  for (const auto& resource : offer.resources)
    preferences.emplace(resource.name,
                        resources::Preferences(inventory, resource, options.shared_policy));
  return std::make_shared<const Offering>(
      Offering{std::move(inventory), std::move(offer), std::move(answers), std::move(preferences)});
}

}  // namespace gantry::agent
