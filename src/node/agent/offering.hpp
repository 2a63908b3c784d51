// SPDX-License-Identifier: Apache-2.0
// What the node offers right now, with everything that is needed to answer for it from memory. Made
// anew when the machine or the configuration changes, never changed afterwards.
#pragma once

#include "base/core/result.hpp"
#include "node/resources/answer.hpp"
#include "node/resources/prefer.hpp"
#include "node/resources/resources.hpp"

#include <map>
#include <memory>
#include <string>

namespace gantry::agent {

struct Offering {
  model::Inventory inventory;
  resources::Offer offer;
  resources::Answers answers;
  std::map<std::string, resources::Preferences, std::less<>> preferences;  // by resource
};

Result<std::shared_ptr<const Offering>> make_offering(model::Inventory inventory,
                                                      resources::Offer offer,
                                                      const options::Options& options,
                                                      const resources::AnswerSetting& setting);

}  // namespace gantry::agent
