// SPDX-License-Identifier: Apache-2.0
// The pieces of find(): which cards may be, which set of them, and why none.
#pragma once

#include "place/state_internal.hpp"

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

bool fits(const Card& card, const Load& load);
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

Refusal why_not(const Ground& ground, Want& want, Cards among);
Found find_among(const Ground& ground, Want& want, const Rules& rules, Cards among, Answer answer);

}  // namespace gantry::place
