// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/find_internal.hpp"

#include <bit>

namespace gantry::placement {
namespace {

// None: enough cards pass everything.
Refusal first_short(const Ground& ground, Cards among, std::uint32_t needed, const auto& load_on) {
  Tally tally;
  for (; among != 0; among &= among - 1) {
    const auto& card = ground.cards[static_cast<std::size_t>(std::countr_zero(among))];
    tally.count(card, load_on(card));
  }
  return tally.first_short(needed);
}

// Of two reasons the one that others leaving would not help with.
Refusal worse(Refusal a, Refusal b) {
  if (a == Refusal::None || (resolvable(a) && b != Refusal::None && !resolvable(b))) return b;
  return a;
}

}  // namespace

Refusal why_not_together(const Ground& ground, Want& want, Cards among) {
  auto reason = Refusal::None;
  for (std::uint32_t place = 0; place < want.gpus(); ++place) {
    const auto short_of =
        first_short(ground, among, place + 1, [&](const Card& card) -> const Load& {
          return want.shared_load(place, card.total_mib, ground.node->unit_mib);
        });
    reason = worse(reason, short_of);
  }
  return reason;
}

Refusal why_not_alone(const Ground& ground, Want& want, Cards among) {
  const auto unit = ground.node->unit_mib;
  const bool any_card = !want.by_card() && among == all_cards(ground);
  auto reason = Refusal::None;
  for (std::size_t c = 0; c < want.containers(); ++c) {
    auto short_of = Refusal::None;
    if (any_card && want.gpus_of(c) == 1)
      short_of = refused_at_once(ground.most, want.own_load(c, 0, unit));
    if (short_of == Refusal::None)
      short_of = first_short(ground, among, want.gpus_of(c), [&](const Card& card) -> const Load& {
        return want.own_load(c, card.total_mib, unit);
      });
    reason = worse(reason, short_of);
  }
  return reason;
}

bool fits_empty(const Ground& ground, Want& want, Cards among) {
  std::vector<Card> empty(ground.cards.begin(), ground.cards.end());
  for (auto& card : empty) {
    card.free_mib = card.total_mib;
    card.slots_free = static_cast<std::uint16_t>(card.slots_free + card.tenants);
    card.cores = card.tenants = 0;
  }
  const auto emptied = ground.with(empty);
  return together(emptied, want, {}, among).found || apart(emptied, want, {}, among).has_value();
}

}  // namespace gantry::placement
