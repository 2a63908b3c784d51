// SPDX-License-Identifier: Apache-2.0
// The pieces of find(): which cards may be, which set of them, and why none.
#pragma once

#include "cluster/placement/state_internal.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::placement {

using CardMask = std::uint64_t;  // a set of a node's own cards

struct Policies {
  podspec::PlacementPolicy nodes = podspec::PlacementPolicy::Pack;
  podspec::PlacementPolicy gpus = podspec::PlacementPolicy::Pack;
};
Policies policies_for(const PodDemand& demand, const Options& options);

// The tests of a card, in the order in which reasons are given.
inline constexpr std::array kCardTests{Refusal::TooBig, Refusal::Unhealthy, Refusal::Exclusive,
                                       Refusal::Memory, Refusal::Cores,     Refusal::Slots};

// A byte for each test, 1 where the card passes it and all before it: added up over cards, how many
// get past each. Without jumps, as nobody can foresee which card fails what.
inline std::uint64_t passed(const Card& card, const CardLoad& load) {
  std::uint64_t so_far =
      std::uint64_t{!load.impossible} & std::uint64_t{load.cores <= kWholeCardCores} &
      std::uint64_t{card.total_mib >= load.mib} &
      std::uint64_t{card.slots_free + card.tenants >= static_cast<int>(load.slots)};
  std::uint64_t all = so_far;
  all |= (so_far &= std::uint64_t{card.usable}) << 8;
  all |= (so_far &= std::uint64_t{!load.alone} | std::uint64_t{card.tenants == 0}) << 16;
  all |= (so_far &= std::uint64_t{card.free_mib >= load.mib}) << 24;
  all |= (so_far &= std::uint64_t{card.cores < kWholeCardCores} &
                    std::uint64_t{card.cores + load.cores <= kWholeCardCores})
         << 32;
  all |= (so_far &= std::uint64_t{card.slots_free >= load.slots}) << 40;
  return all;
}
// All of them at once.
inline bool fits(const Card& card, const CardLoad& load) {
  return (card.free_mib >= load.mib) & card.usable & (card.slots_free >= load.slots) &
         (card.cores < kWholeCardCores) & (card.cores + load.cores <= kWholeCardCores) &
         (!load.alone | (card.tenants == 0)) & !load.impossible;
}

// How many cards of a node get how far. A node has 64 at most, so no byte overflows.
class PassCounter {
 public:
  void count(const Card& card, const CardLoad& load) { passed_ += passed(card, load); }
  // The first reason that leaves fewer cards than are needed; None: enough fit.
  Refusal first_short(std::uint32_t needed) const {
    for (std::size_t i = 0; i < kCardTests.size(); ++i)
      if ((passed_ >> 8 * i & 0xff) < needed) return kCardTests[i];
    return Refusal::None;
  }

 private:
  std::uint64_t passed_ = 0;
};

// Why no card of the node has room, where that is seen without a look at each; None: look.
inline Refusal refused_by_maxima(const CardMaxima& maxima, const CardLoad& load) {
  if (load.alone || load.impossible || load.slots > maxima.slots) return Refusal::None;
  if (maxima.total_mib < load.mib) return Refusal::TooBig;
  if (maxima.usable_mib < load.mib) return Refusal::Unhealthy;
  return maxima.free_mib < load.mib ? Refusal::Memory : Refusal::None;
}

// What taking it spoils; the least is taken. Only for a card that fits.
std::uint64_t cost(const Card& card, const CardLoad& load, const Policies& rules);

CardMask all_cards(const NodeState& node_state);
CardMask matching(const NodeState& node_state, const PodDemand& demand);  // models and UUIDs
// Cards that may be used together: all, or those of one NUMA node each.
std::vector<CardMask> card_groups(const NodeState& node_state, const PodDemand& demand,
                                  CardMask among);

struct CardSet {
  bool found = false;
  std::vector<std::uint16_t> cards;
  std::uint64_t worst_cost = 0;
};
CardSet place_together(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                       CardMask among);
// Replaces the cards by the best connected ones where that is wished, or costs nothing.
void connect(const NodeState& node_state, PodDemand& demand, CardMask among, CardSet& joint);
// Each container on cards of its own choice, where no card has room for all of them.
std::optional<CardChoice> place_separately(const NodeState& node_state, const PodDemand& demand,
                                           const Policies& rules, CardMask among);

// Why no set of cards has room for all containers together.
Refusal reason_not_together(const NodeState& node_state, PodDemand& demand, CardMask among);
// Of a container that would have no place even without the others; None: each would have one.
Refusal reason_not_alone(const NodeState& node_state, PodDemand& demand, CardMask among);
// Whether all would have one if nobody else were on the node.
bool fits_empty(const NodeState& node_state, PodDemand& demand, CardMask among);
// For asks that want the same of each card and have no wishes: one look at each card.
FindResult find_plain(const NodeState& node_state, PodDemand& demand, const Policies& rules);
FindResult find_among(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                      CardMask among, FindDetail answer);
// The same where it is known that no set of cards has room for all containers together.
FindResult find_apart(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                      CardMask among, FindDetail answer);

}  // namespace gantry::placement
