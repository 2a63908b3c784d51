// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/find_internal.hpp"

#include <bit>

namespace gantry::placement {
namespace {

// None: enough cards pass all tests.
Refusal first_short(const NodeState& node_state, CardMask among, std::uint32_t needed,
                    const auto& load_on) {
  PassCounter tally;
  for (; among != 0; among &= among - 1) {
    const auto& card = node_state.cards[static_cast<std::size_t>(std::countr_zero(among))];
    tally.count(card, load_on(card));
  }
  return tally.first_short(needed);
}

// Of two reasons, the one that does not go away when other pods leave.
Refusal worse(Refusal a, Refusal b) {
  if (a == Refusal::None || (resolvable(a) && b != Refusal::None && !resolvable(b))) return b;
  return a;
}

}  // namespace

Refusal reason_not_together(const NodeState& node_state, PodDemand& demand, CardMask among) {
  auto reason = Refusal::None;
  for (std::uint32_t place = 0; place < demand.gpus(); ++place) {
    const auto short_of =
        first_short(node_state, among, place + 1, [&](const Card& card) -> const CardLoad& {
          return demand.shared_load(place, card.total_mib, node_state.node->unit_mib);
        });
    reason = worse(reason, short_of);
  }
  return reason;
}

Refusal reason_not_alone(const NodeState& node_state, PodDemand& demand, CardMask among) {
  const auto unit = node_state.node->unit_mib;
  const bool any_card = !demand.depends_on_card_size() && among == all_cards(node_state);
  auto reason = Refusal::None;
  for (std::size_t c = 0; c < demand.containers(); ++c) {
    auto short_of = Refusal::None;
    if (any_card && demand.gpus_of(c) == 1)
      short_of = refused_by_maxima(node_state.maxima, demand.own_load(c, 0, unit));
    if (short_of == Refusal::None)
      short_of = first_short(node_state, among, demand.gpus_of(c),
                             [&](const Card& card) -> const CardLoad& {
                               return demand.own_load(c, card.total_mib, unit);
                             });
    reason = worse(reason, short_of);
  }
  return reason;
}

bool fits_empty(const NodeState& node_state, PodDemand& demand, CardMask among) {
  std::vector<Card> empty(node_state.cards.begin(), node_state.cards.end());
  for (auto& card : empty) {
    card.free_mib = card.total_mib;
    card.slots_free = static_cast<std::uint16_t>(card.slots_free + card.tenants);
    card.cores = card.tenants = 0;
  }
  const auto emptied = node_state.with(empty);
  return place_together(emptied, demand, {}, among).found ||
         place_separately(emptied, demand, {}, among).has_value();
}

}  // namespace gantry::placement
