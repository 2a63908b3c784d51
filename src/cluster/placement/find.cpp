// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/find_internal.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace gantry::placement {
namespace {

constexpr auto kNever = ~std::uint64_t{0};
constexpr std::uint64_t kWhole = std::uint64_t{1} << 41;  // breaking up an empty card

struct Fill {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint32_t tenants = 0;
  std::uint32_t empty = 0;
};

Fill fill_of(std::span<const Card> cards) {
  Fill fill;
  for (const auto& card : cards) {
    fill.total += card.total_mib;
    fill.free += card.free_mib;
    fill.tenants += card.tenants;
    if (card.usable && card.tenants == 0) ++fill.empty;
  }
  return fill;
}

int tenths(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<int>(part * 10 / whole);
}

// Packing by the piece that is left on the card: the smaller, the better; an empty card is broken
// up last, and on a node where others are in use already rather than on an empty one.
int packed_score(std::uint64_t worst_cost) {
  constexpr std::uint64_t kGiB = 1024;
  if (worst_cost == 0) return 10;
  return 9 - std::min(6, static_cast<int>(std::bit_width(worst_cost / kGiB)));
}

int score_of(const Ground& ground, const Want& want, const Rules& rules, const Load& load,
             std::uint64_t worst_cost) {
  const bool packs = rules.nodes == podspec::Order::Pack && rules.gpus == podspec::Order::Pack;
  if (packs && !load.alone && worst_cost < kWhole) return packed_score(worst_cost);
  const auto fill = fill_of(ground.cards);
  const auto taken = std::min(fill.free, load.mib * want.gpus());
  if (rules.nodes == podspec::Order::Spread) return tenths(fill.free - taken, fill.total);
  if (rules.gpus == podspec::Order::Spread)
    return tenths(fill.total - fill.free + taken, fill.total);
  if (!load.alone) return fill.tenants > 0 ? 2 : 1;
  const auto left = fill.empty - std::min(fill.empty, want.gpus());
  return std::max(1, 10 - static_cast<int>(left));
}

Refusal why_not_plain(const Ground& ground, Want& want) {
  Tally tally;
  auto load = want.shared_load(0, ground.cards.front().total_mib, ground.node->unit_mib);
  for (const auto& card : ground.cards) {
    if (want.by_card()) load = want.shared_load(0, card.total_mib, ground.node->unit_mib);
    tally.count(card, load);
  }
  return tally.first_short(want.gpus());
}

}  // namespace

Rules rules_of(const Want& want, const Options& options) {
  const auto& wishes = want.ask().wishes;
  return {.nodes = wishes.nodes.value_or(options.nodes),
          .gpus = wishes.gpus.value_or(options.gpus)};
}

std::uint64_t cost(const Card& card, const Load& load, const Rules& rules) {
  if (rules.gpus == podspec::Order::Spread) {
    const auto used = card.total_mib - card.free_mib + load.mib;
    return (used << 10) / std::max(card.total_mib, 1U) << 16 | card.tenants;
  }
  const auto left = card.free_mib - load.mib;
  if (left == 0 || card.tenants > 0 || load.alone) return left;
  return kWhole + left;
}

// Of the cheapest card that fits; kNever: none does.
static std::uint64_t least_cost(const Ground& ground, const Load& load, const Rules& rules) {
  auto least = kNever;
  for (const auto& card : ground.cards)
    least = std::min(least, fits(card, load) ? cost(card, load, rules) : kNever);
  return least;
}

// The cards that all containers use together, hardest part first. As each part asks no more than
// the one before, the cards that fit it include those that fit the one before: taking the cheapest
// each time fails only where nothing works.
Joint together(const Ground& ground, Want& want, const Rules& rules, Cards among) {
  Joint joint;
  Cards left = among;
  for (std::uint32_t place = 0; place < want.gpus(); ++place) {
    std::uint64_t least = ~std::uint64_t{0};
    int best = -1;
    for (Cards rest = left; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      const auto& card = ground.cards[static_cast<std::size_t>(i)];
      const auto& load = want.shared_load(place, card.total_mib, ground.node->unit_mib);
      if (!fits(card, load)) continue;
      const auto at = cost(card, load, rules);
      if (at < least) {
        least = at;
        best = i;
      }
    }
    if (best < 0) return {};
    joint.cards.push_back(static_cast<std::uint16_t>(best));
    joint.worst_cost = std::max(joint.worst_cost, least);
    left &= ~(Cards{1} << best);
  }
  joint.found = true;
  return joint;
}

Found find_plain(const Ground& ground, Want& want, const Rules& rules) {
  const auto unit = ground.node->unit_mib;
  auto load = want.shared_load(0, ground.cards.front().total_mib, unit);
  if (want.gpus() == 1 && !want.by_card()) {
    const auto refusal = refused_at_once(ground.most, load);
    if (refusal != Refusal::None) return {.refusal = refusal};
    const auto least = least_cost(ground, load, rules);
    if (least == kNever) return {.refusal = why_not_plain(ground, want)};
    return {.score = score_of(ground, want, rules, load, least)};
  }
  std::array<std::uint64_t, 64> costs;  // NOLINT: written before it is read
  std::size_t fitting = 0;
  for (const auto& card : ground.cards) {
    if (want.by_card()) load = want.shared_load(0, card.total_mib, unit);
    if (fits(card, load)) costs[fitting++] = cost(card, load, rules);
  }
  if (fitting < want.gpus()) return {.refusal = why_not_plain(ground, want)};
  const auto worst = costs.begin() + want.gpus() - 1;
  std::nth_element(costs.begin(), worst, costs.begin() + static_cast<std::ptrdiff_t>(fitting));
  return {.score = score_of(ground, want, rules, load, *worst)};
}

Found find(const Ground& ground, Want& want, const Options& options, Answer answer) {
  if (want.whole() && ground.node->whole_gpus > 0) return {.score = 10};
  if (ground.cards.empty()) return {.refusal = Refusal::NoSharedGpus};
  if (want.too_big()) return {.refusal = Refusal::TooBig};
  const auto rules = rules_of(want, options);
  if (answer == Answer::Score && want.plain()) {
    auto found = find_plain(ground, want, rules);
    if (found.refusal == Refusal::None || !want.several()) return found;
    return find_apart(ground, want, rules, all_cards(ground), answer);
  }
  const auto among = matching(ground, want);
  const auto groups = groups_of(ground, want, among);
  Found best{.refusal = Refusal::NoMatch};
  for (const Cards group : groups) {
    auto found = find_among(ground, want, rules, group, answer);
    if (found.refusal == Refusal::None &&
        (best.refusal != Refusal::None || found.score > best.score)) {
      best = std::move(found);
    } else if (best.refusal == Refusal::NoMatch ||
               (resolvable(found.refusal) && !resolvable(best.refusal) &&
                best.refusal != Refusal::None)) {
      best.refusal = found.refusal;
    }
  }
  return best;
}

Found find_among(const Ground& ground, Want& want, const Rules& rules, Cards among, Answer answer) {
  auto joint = together(ground, want, rules, among);
  if (!joint.found) return find_apart(ground, want, rules, among, answer);
  const auto& first = ground.cards[joint.cards.front()];
  const auto load = want.shared_load(0, first.total_mib, ground.node->unit_mib);
  Found found{.score = score_of(ground, want, rules, load, joint.worst_cost)};
  if (answer == Answer::Score) return found;
  if (want.gpus() > 1) connect(ground, want, among, joint);
  for (std::size_t c = 0; c < want.containers(); ++c) {
    const auto count = static_cast<std::ptrdiff_t>(want.gpus_of(c));
    found.choice.emplace_back(joint.cards.begin(), joint.cards.begin() + count);
  }
  return found;
}

Found find_apart(const Ground& ground, Want& want, const Rules& rules, Cards among, Answer answer) {
  if (!want.several()) return {.refusal = why_not_together(ground, want, among)};
  const auto alone = why_not_alone(ground, want, among);
  if (alone != Refusal::None) return {.refusal = alone};
  auto choice = apart(ground, want, rules, among);
  if (!choice)
    return {.refusal = fits_empty(ground, want, among) ? Refusal::Memory : Refusal::TooBig};
  Found found{.score = 5};
  if (answer == Answer::Cards) found.choice = *std::move(choice);
  return found;
}

std::vector<Charge> charges(const Ground& ground, const Want& want, const Choice& choice) {
  std::vector<Charge> made;
  for (std::uint16_t i = 0; i < ground.cards.size(); ++i) {
    Containers on_it = 0;
    for (std::size_t c = 0; c < choice.size(); ++c) {
      if (std::find(choice[c].begin(), choice[c].end(), i) != choice[c].end())
        on_it |= Containers{1} << c;
    }
    if (on_it == 0) continue;
    const auto load = want.load(on_it, ground.cards[i].total_mib, ground.node->unit_mib);
    made.push_back({.card = i,
                    .slots = static_cast<std::uint16_t>(load.slots),
                    .cores = load.cores,
                    .mib = load.mib});
  }
  return made;
}

}  // namespace gantry::placement
