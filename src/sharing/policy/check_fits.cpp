// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "gpu/ownership/fits.hpp"
#include "sharing/policy/share.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace gantry::policy {
namespace {

// A share of a GPU has no part of its own and does not exclude others.
ownership::Holding holding_of(const Share& share, const GpuCapacity& card) {
  return {.holder = share.name,
          .mode = model::AllocationMode::Shares,
          .memory_bytes = share.memory ? share.memory->on(card.memory_bytes) : 0,
          .percent = share.time_policy.percent};
}

Error larger_than_the_card(const Share& share, const GpuCapacity& card) {
  return Error(Errc::Invalid, fmt::format("share {}: {} of memory, but {} has {}", share.name,
                                          to_string(*share.memory), card.uuid.text,
                                          human_bytes(card.memory_bytes)))
      .advise("use a smaller limit: --memory 50%");
}

Error too_much(const Share& added, const GpuCapacity& card, std::string_view what,
               std::string_view sum, const std::vector<std::string>& names) {
  return Error(Errc::Invalid,
               fmt::format("share {}: {} of all shares of {} would be {} (with {})", added.name,
                           what, card.uuid.text, sum, fmt::join(names, ", ")))
      .advise("make one smaller with `gantry share set`, or allow this with --overcommit");
}

}  // namespace

Status check_fits(const Share& added, std::span<const Share> present, const GpuCapacity& card,
                  Overcommit overcommit) {
  std::vector<ownership::Holding> holdings;
  holdings.reserve(present.size());
  for (const auto& share : present) holdings.push_back(holding_of(share, card));
  const auto refusals = ownership::fits(
      {.name = card.uuid.text,
       .use = model::AllocationMode::Shares,
       .memory_bytes = card.memory_bytes},
      holdings,
      {.holding = holding_of(added, card), .overcommit = overcommit == Overcommit::Allowed});
  using Reason = ownership::CardRefusal::Reason;
  for (const auto reason : {Reason::TooBig, Reason::Time, Reason::Memory}) {
    const auto found =
        std::find_if(refusals.begin(), refusals.end(),
                     [&](const ownership::CardRefusal& r) { return r.reason == reason; });
    if (found == refusals.end()) continue;
    if (reason == Reason::TooBig) return larger_than_the_card(added, card);
    return reason == Reason::Time
               ? too_much(added, card, "compute", fmt::format("{}%", found->sum), found->holders)
               : too_much(
                     added, card, "memory",
                     fmt::format("{} of {}", human_bytes(found->sum), human_bytes(found->capacity)),
                     found->holders);
  }
  return {};
}

}  // namespace gantry::policy
