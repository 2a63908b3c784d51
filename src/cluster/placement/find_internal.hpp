// SPDX-License-Identifier: Apache-2.0
// The pieces of find(): which cards may be, which set of them, and why none.
#pragma once

#include "cluster/placement/state_internal.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::placement {

using Cards = std::uint64_t;  // a set of a node's own cards

struct Rules {
  podspec::Order nodes = podspec::Order::Pack;
  podspec::Order gpus = podspec::Order::Pack;
};
Rules rules_of(const Want& want, const Options& options);

// The tests of a card, in the order in which reasons are given.
inline constexpr std::array kTests{Refusal::TooBig, Refusal::Unhealthy, Refusal::Exclusive,
                                   Refusal::Memory, Refusal::Cores,     Refusal::Slots};

// A byte for each test, 1 where the card passes it and all before it: added up over cards, how many
// get past each. Without jumps, as nobody can foresee which card fails what.
inline std::uint64_t passed(const Card& card, const Load& load) {
  std::uint64_t so_far =
      std::uint64_t{!load.impossible} & std::uint64_t{load.cores <= kAllCores} &
      std::uint64_t{card.total_mib >= load.mib} &
      std::uint64_t{card.slots_free + card.tenants >= static_cast<int>(load.slots)};
  std::uint64_t all = so_far;
  all |= (so_far &= std::uint64_t{card.usable}) << 8;
  all |= (so_far &= std::uint64_t{!load.alone} | std::uint64_t{card.tenants == 0}) << 16;
  all |= (so_far &= std::uint64_t{card.free_mib >= load.mib}) << 24;
  all |= (so_far &= std::uint64_t{card.cores < kAllCores} &
                    std::uint64_t{card.cores + load.cores <= kAllCores})
         << 32;
  all |= (so_far &= std::uint64_t{card.slots_free >= load.slots}) << 40;
  return all;
}
// All of them at once.
inline bool fits(const Card& card, const Load& load) {
  return (card.free_mib >= load.mib) & card.usable & (card.slots_free >= load.slots) &
         (card.cores < kAllCores) & (card.cores + load.cores <= kAllCores) &
         (!load.alone | (card.tenants == 0)) & !load.impossible;
}

// How many cards of a node get how far. A node has 64 at most, so no byte overflows.
class Tally {
 public:
  void count(const Card& card, const Load& load) { passed_ += passed(card, load); }
  // The first reason that leaves fewer cards than are needed; None: enough fit.
  Refusal first_short(std::uint32_t needed) const {
    for (std::size_t i = 0; i < kTests.size(); ++i)
      if ((passed_ >> 8 * i & 0xff) < needed) return kTests[i];
    return Refusal::None;
  }

 private:
  std::uint64_t passed_ = 0;
};

// Why no card of the node has room, where that is seen without a look at each; None: look.
inline Refusal refused_at_once(const Most& most, const Load& load) {
  if (load.alone || load.impossible || load.slots > most.slots) return Refusal::None;
  if (most.total_mib < load.mib) return Refusal::TooBig;
  if (most.usable_mib < load.mib) return Refusal::Unhealthy;
  return most.free_mib < load.mib ? Refusal::Memory : Refusal::None;
}

// What taking it spoils; the least is taken. Only for a card that fits.
std::uint64_t cost(const Card& card, const Load& load, const Rules& rules);

Cards all_cards(const Ground& ground);
Cards matching(const Ground& ground, const Want& want);  // models and UUIDs
// Cards that may be used together: all, or those of one NUMA node each.
std::vector<Cards> groups_of(const Ground& ground, const Want& want, Cards among);

struct Joint {
  bool found = false;
  std::vector<std::uint16_t> cards;
  std::uint64_t worst_cost = 0;
};
Joint together(const Ground& ground, Want& want, const Rules& rules, Cards among);
// Replaces the cards by the best connected ones where that is wished, or costs nothing.
void connect(const Ground& ground, Want& want, Cards among, Joint& joint);
// Each container on cards of its own choice, where no card has room for all of them.
std::optional<Choice> apart(const Ground& ground, const Want& want, const Rules& rules,
                            Cards among);

// Why no set of cards has room for all containers together.
Refusal why_not_together(const Ground& ground, Want& want, Cards among);
// Of a container that would have no place even without the others; None: each would have one.
Refusal why_not_alone(const Ground& ground, Want& want, Cards among);
// Whether all would have one if nobody else were on the node.
bool fits_empty(const Ground& ground, Want& want, Cards among);
// For asks that want the same of each card and have no wishes: one look at each card.
Found find_plain(const Ground& ground, Want& want, const Rules& rules);
Found find_among(const Ground& ground, Want& want, const Rules& rules, Cards among, Answer answer);
// The same where it is known that no set of cards has room for all containers together.
Found find_apart(const Ground& ground, Want& want, const Rules& rules, Cards among, Answer answer);

}  // namespace gantry::placement
