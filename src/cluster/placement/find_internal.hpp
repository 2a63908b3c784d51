// SPDX-License-Identifier: Apache-2.0
// The parts of find(): which cards are possible, which set of them is chosen, and why none fits.
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

// The tests of a card, in the order in which reasons are reported.
inline constexpr std::array kCardTests{Refusal::TooBig, Refusal::Unhealthy, Refusal::Exclusive,
                                       Refusal::Memory, Refusal::Cores,     Refusal::Slots};

// One byte for each test, 1 if the card passes it and all tests before it. The sum over all cards
// says how many pass each test. Without branches, because it is unpredictable which test a card
// fails.
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
  all |= (so_far & std::uint64_t{card.slots_free >= load.slots}) << 40;
  return all;
}
// All tests at once.
inline bool fits(const Card& card, const CardLoad& load) {
  return (card.free_mib >= load.mib) & card.usable & (card.slots_free >= load.slots) &
         (card.cores < kWholeCardCores) & (card.cores + load.cores <= kWholeCardCores) &
         (!load.alone | (card.tenants == 0)) & !load.impossible;
}

// Counts how many cards of a node pass each test. A node has at most 64 cards, so no byte
// overflows.
class PassCounter {
 public:
  void count(const Card& card, const CardLoad& load) { passed_ += passed(card, load); }
  // The first test that leaves fewer cards than needed; None: enough cards fit.
  Refusal first_short(std::uint32_t needed) const {
    for (std::size_t i = 0; i < kCardTests.size(); ++i)
      if ((passed_ >> 8 * i & 0xff) < needed) return kCardTests[i];
    return Refusal::None;
  }

 private:
  std::uint64_t passed_ = 0;
};

// Why no card of the node has room, if the maxima alone show it; None: check the cards.
inline Refusal refused_by_maxima(const CardMaxima& maxima, const CardLoad& load) {
  if (load.alone || load.impossible || load.slots > maxima.slots) return Refusal::None;
  if (maxima.total_mib < load.mib) return Refusal::TooBig;
  if (maxima.usable_mib < load.mib) return Refusal::Unhealthy;
  return maxima.free_mib < load.mib ? Refusal::Memory : Refusal::None;
}

// The cost of using the card; the cheapest card is chosen. Only for a card that fits.
std::uint64_t cost(const Card& card, const CardLoad& load, const Policies& rules);

CardMask all_cards(const NodeState& node_state);
CardMask matching(const NodeState& node_state, const PodDemand& demand);  // by model and UUID
// Sets of cards that may be used together: all cards, or those of one NUMA node each.
std::vector<CardMask> card_groups(const NodeState& node_state, const PodDemand& demand,
                                  CardMask among);

struct CardSet {
  bool found = false;
  std::vector<std::uint16_t> cards;
  std::uint64_t worst_cost = 0;
};
CardSet place_together(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                       CardMask among);
// Replaces the cards by the best connected ones if the pod asks for it, or if it costs nothing.
void connect(const NodeState& node_state, PodDemand& demand, CardMask among, CardSet& joint);
// Places each container on its own cards, if no card has room for all containers.
std::optional<CardChoice> place_separately(const NodeState& node_state, const PodDemand& demand,
                                           const Policies& rules, CardMask among);

// Why no set of cards has room for all containers together.
Refusal reason_not_together(const NodeState& node_state, PodDemand& demand, CardMask among);
// Why one container does not fit even without the others; None: each container would fit alone.
Refusal reason_not_alone(const NodeState& node_state, PodDemand& demand, CardMask among);
// Whether all containers would fit if the node were empty.
bool fits_empty(const NodeState& node_state, PodDemand& demand, CardMask among);
// For requests that need the same of each card and have no affinity: checks each card once.
FindResult find_plain(const NodeState& node_state, PodDemand& demand, const Policies& rules);
FindResult find_among(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                      CardMask among, FindDetail answer);
// The same, if it is known that no set of cards has room for all containers together.
FindResult find_apart(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                      CardMask among, FindDetail answer);

}  // namespace gantry::placement
