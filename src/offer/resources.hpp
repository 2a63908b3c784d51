// SPDX-License-Identifier: Apache-2.0
// What a node offers: from what the machine has and what was configured to resources with their
// devices. Each GPU is in exactly one use. Pure.
#pragma once

#include "base/result.hpp"
#include "model/inventory.hpp"
#include "model/offer.hpp"
#include "offer/options.hpp"

#include <string>
#include <vector>

namespace gantry::offer {

// What one GPU is used for, and who said so.
struct GpuUse {
  model::GpuUuid gpu;
  int index = 0;
  model::Use use = model::Use::Whole;
  std::string why;  // "config.yaml:12", "--mig-strategy=mixed", "the default"
  bool operator==(const GpuUse&) const = default;
};

struct Offer {
  std::vector<model::OfferedResource> resources;  // by name
  std::vector<GpuUse> uses;                       // of every GPU, also of those not offered
  std::vector<std::string> notes;                 // what is not offered and why, one sentence each
  bool operator==(const Offer&) const = default;
};

// Invalid, naming both, where two settings claim the same GPU; Unsupported where a MIG layout does
// not fit the strategy; each with what helps. A GPU that is not in the inventory has no entry; one
// that is lost keeps its own, for health to speak about.
Result<Offer> resources(const model::Inventory& machine, const Options& options);

}  // namespace gantry::offer
