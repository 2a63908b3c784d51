// SPDX-License-Identifier: Apache-2.0
// The tokens that the kubelet counts for shared GPUs.
#include "base/core/hash.hpp"
#include "node/resources/resources.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::resources {
namespace {

using model::AdvertisedResource;

// Ids have a fixed width, so that sorted ids are in numeric order.
AdvertisedResource tokens(std::string_view name, std::string_view prefix, std::uint64_t count) {
  AdvertisedResource resource{.name = std::string(name),
                              .use = model::AllocationMode::Shares,
                              .tokens = true,
                              .devices = {}};
  resource.devices.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i)
    resource.devices.push_back({.id = fmt::format("{}-{:05}", prefix, i)});
  return resource;
}

}  // namespace

void rebuild_tokens(Offer& offer) {
  std::erase_if(offer.resources, [](const AdvertisedResource& known) { return known.tokens; });
  const auto& shared = offer.shared;
  if (!shared.cards.empty()) {
    const auto slots = shared.cards.size() * shared.slots;
    std::uint64_t units = 0;
    for (const auto& card : shared.cards) units += card.mib / shared.unit_mib;
    // Per GPU: a GPU of 143771 MiB can give 140 GiB, and two of them 280.
    if (shared.unit_mib > 1) offer.resources.push_back(tokens(kMemoryResource, "gib", units));
    offer.resources.push_back(tokens(kShareResource, "slot", slots));
    if (shared.everything) offer.resources.push_back(tokens("nvidia.com/gpu", "slot", slots));
  }
  std::sort(offer.resources.begin(), offer.resources.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

std::string slot_name(std::string_view resource, std::span<const std::string> ids) {
  std::vector<std::string_view> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  Hash hash;
  hash.add(resource);
  for (const auto id : sorted) hash.add(id);
  return fmt::format("slot-{}", hash.text());
}

}  // namespace gantry::resources
