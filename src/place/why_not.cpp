// SPDX-License-Identifier: Apache-2.0
#include "place/find_internal.hpp"

#include <array>
#include <bit>

namespace gantry::place {
namespace {

// In the order in which a card is looked at; how far each card gets is counted.
constexpr std::array kStages{Refusal::TooBig, Refusal::Unhealthy, Refusal::Exclusive,
                             Refusal::Memory, Refusal::Cores,     Refusal::Slots};

bool passes(Refusal stage, const Card& card, const Books& books, const Load& load) {
  switch (stage) {
    case Refusal::TooBig:
      return !load.impossible && card.total_mib >= load.mib && load.cores <= kAllCores &&
             books.facts.slots >= load.slots;
    case Refusal::Unhealthy: return card.usable;
    case Refusal::Exclusive: return !load.alone || card.tenants == 0;
    case Refusal::Memory: return card.free_mib >= load.mib;
    case Refusal::Cores: return card.cores < kAllCores && card.cores + load.cores <= kAllCores;
    default: return card.slots_free >= load.slots;
  }
}

// None: enough cards pass everything.
Refusal first_short(const Ground& ground, Cards among, std::uint32_t needed, const auto& load_on) {
  for (const auto stage : kStages) {
    for (Cards rest = among; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      if (!passes(stage, ground.cards[i], ground.books[i], load_on(ground.cards[i])))
        among &= ~(Cards{1} << i);
    }
    if (static_cast<std::uint32_t>(std::popcount(among)) < needed) return stage;
  }
  return Refusal::None;
}

Refusal why_not_together(const Ground& ground, Want& want, Cards among) {
  for (std::uint32_t place = 0; place < want.gpus(); ++place) {
    const auto refusal =
        first_short(ground, among, place + 1, [&](const Card& card) -> const Load& {
          return want.shared_load(place, card.total_mib, ground.node->unit_mib);
        });
    if (refusal != Refusal::None) return refusal;
  }
  return Refusal::Memory;
}

// The first container that would have no place even without the others; else they want too much
// together, which empty cards may have.
Refusal why_not_apart(const Ground& ground, const Want& want, Cards among) {
  for (std::size_t c = 0; c < want.containers(); ++c) {
    const auto refusal = first_short(ground, among, want.gpus_of(c), [&](const Card& card) {
      return want.load(Containers{1} << c, card.total_mib, ground.node->unit_mib);
    });
    if (refusal != Refusal::None) return refusal;
  }
  return Refusal::Memory;
}

}  // namespace

Refusal why_not(const Ground& ground, Want& want, Cards among) {
  if (!want.several()) return why_not_together(ground, want, among);
  std::vector<Card> empty(ground.cards.begin(), ground.cards.end());
  for (std::size_t i = 0; i < empty.size(); ++i) {
    empty[i].free_mib = empty[i].total_mib;
    empty[i].slots_free = static_cast<std::uint16_t>(ground.books[i].facts.slots);
    empty[i].cores = empty[i].tenants = 0;
    empty[i].usable = true;
  }
  const Ground emptied{.cards = empty, .books = ground.books, .node = ground.node};
  if (!together(emptied, want, {}, among).found && !apart(emptied, want, {}, among))
    return Refusal::TooBig;
  return why_not_apart(ground, want, among);
}

}  // namespace gantry::place
