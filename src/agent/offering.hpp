// SPDX-License-Identifier: Apache-2.0
// What the node offers right now, with everything that is needed to answer for it from memory. Made
// anew when the machine or the configuration changes, never changed afterwards.
#pragma once

#include "base/result.hpp"
#include "offer/answer.hpp"
#include "offer/prefer.hpp"
#include "offer/resources.hpp"

#include <map>
#include <memory>
#include <string>

namespace gantry::agent {

struct Offering {
  model::Inventory inventory;
  offer::Offer offer;
  offer::Answers answers;
  std::map<std::string, offer::Preferences, std::less<>> preferences;  // by resource
};

Result<std::shared_ptr<const Offering>> make_offering(model::Inventory inventory,
                                                      offer::Offer offer,
                                                      const offer::Options& options,
                                                      const offer::AnswerSetting& setting);

}  // namespace gantry::agent
