// SPDX-License-Identifier: Apache-2.0
#include "place/find_internal.hpp"

#include <array>
#include <bit>

namespace gantry::place {
namespace {

// None: enough cards pass everything.
Refusal first_short(const Ground& ground, Cards among, std::uint32_t needed, const auto& load_on) {
  Tally tally;
  for (; among != 0; among &= among - 1) {
    const auto& card = ground.cards[static_cast<std::size_t>(std::countr_zero(among))];
    tally.count(fails(card, load_on(card)));
  }
  return tally.first_short(needed);
}

// Of two reasons the one that others leaving would not help with.
Refusal worse(Refusal a, Refusal b) {
  if (a == Refusal::None || (resolvable(a) && b != Refusal::None && !resolvable(b))) return b;
  return a;
}

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

}  // namespace

Refusal Tally::first_short(std::uint32_t needed) const {
  constexpr std::array kOrder{Refusal::Slots,     Refusal::Cores,     Refusal::Memory,
                              Refusal::Exclusive, Refusal::Unhealthy, Refusal::TooBig};
  std::uint32_t left = fit();
  auto reason = Refusal::None;
  for (const auto refusal : kOrder) {  // the last that all but too few get to
    if (left < needed) reason = refusal;
    left += counts_[static_cast<std::size_t>(refusal)];
  }
  return reason;
}

Refusal why_not_alone(const Ground& ground, const Want& want, Cards among) {
  auto reason = Refusal::None;
  for (std::size_t c = 0; c < want.containers(); ++c) {
    const auto short_of = first_short(ground, among, want.gpus_of(c), [&](const Card& card) {
      return want.load(Containers{1} << c, card.total_mib, ground.node->unit_mib);
    });
    reason = worse(reason, short_of);
  }
  return reason;
}

Refusal why_not(const Ground& ground, Want& want, Cards among) {
  if (!want.several()) return why_not_together(ground, want, among);
  const auto alone = why_not_alone(ground, want, among);
  if (alone != Refusal::None) return alone;
  std::vector<Card> empty(ground.cards.begin(), ground.cards.end());
  for (auto& card : empty) {
    card.free_mib = card.total_mib;
    card.slots_free = static_cast<std::uint16_t>(card.slots_free + card.tenants);
    card.cores = card.tenants = 0;
  }
  const Ground emptied{.cards = empty, .books = ground.books, .node = ground.node};
  if (together(emptied, want, {}, among).found || apart(emptied, want, {}, among))
    return Refusal::Memory;
  return Refusal::TooBig;
}

}  // namespace gantry::place
