// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/fits.hpp"

#include "base/core/text.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace gantry::ownership {
namespace {

using Reason = CardRefusal::Reason;

constexpr std::uint64_t kAllTime = 100;

std::uint64_t add_saturated(std::uint64_t a, std::uint64_t b) {
  const auto most = std::numeric_limits<std::uint64_t>::max();
  return a > most - b ? most : a + b;
}

bool replaces(const Holding& wanted, const Holding& present) {
  return wanted.holder == present.holder && wanted.part == present.part;
}

bool conflicts(const Holding& a, const Holding& b) {
  if (a.exclusive() || b.exclusive() || a.mode != b.mode) return true;
  return !a.part.empty() && a.part == b.part;
}

// The allocated amount of one resource of a card: memory or time.
struct AllocatedAmount {
  std::uint64_t own = 0;
  std::uint64_t before = 0;  // of the holding that is replaced
  std::uint64_t sum = 0;
  std::vector<std::string> holders;  // that have a part of it

  bool too_much(std::uint64_t capacity) const { return own > before && sum > capacity; }
};

template <class Amount>
AllocatedAmount allocated(std::span<const Holding> holdings, const Holding& wanted, Amount amount) {
  AllocatedAmount result{.own = amount(wanted), .sum = amount(wanted)};
  for (const auto& holding : holdings) {
    if (replaces(wanted, holding)) {
      result.before = amount(holding);
      continue;
    }
    if (amount(holding) == 0) continue;
    result.sum = add_saturated(result.sum, amount(holding));
    result.holders.push_back(holding.holder);
  }
  return result;
}

std::vector<std::string> holders_in_the_way(std::span<const Holding> holdings,
                                            const Holding& wanted) {
  std::vector<std::string> names;
  for (const auto& holding : holdings) {
    if (!replaces(wanted, holding) && conflicts(wanted, holding)) names.push_back(holding.holder);
  }
  return names;
}

void check_memory(const Card& card, std::span<const Holding> holdings, const HoldingRequest& wanted,
                  std::vector<CardRefusal>& refusals) {
  if (card.memory_bytes == 0) return;
  auto memory =
      allocated(holdings, wanted.holding, [](const Holding& h) { return h.memory_bytes; });
  if (memory.own > card.memory_bytes)
    refusals.push_back(
        {.reason = Reason::TooBig, .sum = memory.own, .capacity = card.memory_bytes});
  if (!wanted.overcommit && memory.too_much(card.memory_bytes))
    refusals.push_back({.reason = Reason::Memory,
                        .holders = std::move(memory.holders),
                        .sum = memory.sum,
                        .capacity = card.memory_bytes});
}

std::string list(const std::vector<std::string>& holders) {
  return holders.empty() ? "it" : fmt::format("{}", fmt::join(holders, ", "));
}

}  // namespace

bool Holding::exclusive() const {
  const bool whole_card = mode == model::AllocationMode::Whole ||
                          mode == model::AllocationMode::Vm || mode == model::AllocationMode::Mig;
  return alone || (whole_card && part.empty());
}

std::vector<CardRefusal> fits(const Card& card, std::span<const Holding> holdings,
                              const HoldingRequest& wanted) {
  std::vector<CardRefusal> refusals;
  if (card.changing) refusals.push_back({.reason = Reason::Changing});
  if (card.owner != wanted.owner) refusals.push_back({.reason = Reason::Owner});
  if (card.use != wanted.holding.mode) refusals.push_back({.reason = Reason::Use});
  check_memory(card, holdings, wanted, refusals);
  auto in_the_way = holders_in_the_way(holdings, wanted.holding);
  if (!in_the_way.empty())
    refusals.push_back({.reason = Reason::Held, .holders = std::move(in_the_way)});
  auto time = allocated(holdings, wanted.holding,
                        [](const Holding& h) -> std::uint64_t { return h.percent; });
  if (!wanted.overcommit && time.too_much(kAllTime))
    refusals.push_back({.reason = Reason::Time,
                        .holders = std::move(time.holders),
                        .sum = time.sum,
                        .capacity = kAllTime});
  return refusals;
}

Error to_error(const CardRefusal& refusal, const Card& card, const HoldingRequest& wanted) {
  const auto& who = wanted.holding.holder;
  switch (refusal.reason) {
    case Reason::Changing:
      return {Errc::Busy,
              fmt::format("{} cannot have {}: its owner is being changed", who, card.name)};
    case Reason::Owner:
      return {Errc::Denied, fmt::format("{} cannot have {}: it belongs to {}", who, card.name,
                                        to_string(card.owner))};
    case Reason::Use:
      return {Errc::Busy,
              fmt::format("{} cannot have {} as `{}`: it is used as `{}`", who, card.name,
                          model::to_string(wanted.holding.mode), model::to_string(card.use))};
    case Reason::TooBig:
      return {Errc::Invalid,
              fmt::format("{} asks for {} of memory, but {} has {}", who, human_bytes(refusal.sum),
                          card.name, human_bytes(refusal.capacity))};
    case Reason::Memory:
      return {Errc::Busy, fmt::format("{} has no room for {}: {} of {} would be allocated, with {}",
                                      card.name, who, human_bytes(refusal.sum),
                                      human_bytes(refusal.capacity), list(refusal.holders))};
    case Reason::Held:
      return {Errc::Busy, fmt::format("{} is held by {}", card.name, list(refusal.holders))};
    case Reason::Time:
      return {Errc::Busy, fmt::format("{} has no room for {}: {} % of its time would be allocated, "
                                      "with {}",
                                      card.name, who, refusal.sum, list(refusal.holders))};
  }
  return {Errc::Internal, "unknown refusal"};
}

Status check_fits(const Card& card, std::span<const Holding> holdings,
                  const HoldingRequest& wanted) {
  const auto refusals = fits(card, holdings, wanted);
  if (refusals.empty()) return {};
  return to_error(refusals.front(), card, wanted);
}

}  // namespace gantry::ownership
