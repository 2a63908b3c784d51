// SPDX-License-Identifier: Apache-2.0
// The pieces of find(): which cards may be, which set of them, and why none.
#pragma once

#include "place/state_internal.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::place {

using Cards = std::uint64_t;  // a set of a node's own cards

struct Rules {
  ask::Order nodes = ask::Order::Pack;
  ask::Order gpus = ask::Order::Pack;
};
Rules rules_of(const Want& want, const Options& options);

// What a card fails first, in the order in which reasons are given; None: it fits.
inline Refusal fails(const Card& card, const Load& load) {
  if (load.impossible || load.cores > kAllCores || card.total_mib < load.mib ||
      card.slots_free + card.tenants < static_cast<int>(load.slots))
    return Refusal::TooBig;
  if (!card.usable) return Refusal::Unhealthy;
  if (load.alone && card.tenants > 0) return Refusal::Exclusive;
  if (card.free_mib < load.mib) return Refusal::Memory;
  if (card.cores >= kAllCores || card.cores + load.cores > kAllCores) return Refusal::Cores;
  return card.slots_free < load.slots ? Refusal::Slots : Refusal::None;
}
inline bool fits(const Card& card, const Load& load) {
  return fails(card, load) == Refusal::None;
}

// How many cards of a node fail what.
class Tally {
 public:
  void count(Refusal refusal) { ++counts_[static_cast<std::size_t>(refusal)]; }
  std::uint32_t fit() const { return counts_[0]; }
  // The first reason that leaves fewer cards than are needed; None: enough fit.
  Refusal first_short(std::uint32_t needed) const;

 private:
  std::array<std::uint16_t, static_cast<std::size_t>(Refusal::Quota) + 1> counts_{};
};

// What taking it spoils; the least is taken. Only for a card that fits.
std::uint64_t cost(const Card& card, const Load& load, const Rules& rules);

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

// Of a container that would have no place even without the others; None: each would have one.
Refusal why_not_alone(const Ground& ground, const Want& want, Cards among);
Refusal why_not(const Ground& ground, Want& want, Cards among);
// For asks that want the same of each card and have no wishes: one look at each card.
Found find_plain(const Ground& ground, Want& want, const Rules& rules);
Found find_among(const Ground& ground, Want& want, const Rules& rules, Cards among, Answer answer);

}  // namespace gantry::place
