// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/find_internal.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace gantry::placement {
namespace {

constexpr auto kNever = ~std::uint64_t{0};
constexpr std::uint64_t kWhole = std::uint64_t{1} << 41;  // the cost of using an empty card

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

int score_tenths(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<int>(part * 10 / whole);
}

// Packing, by the piece that is left on the card: the smaller, the better. An empty card is used
// last, and rather on a node with other cards in use than on an empty node.
int packed_score(std::uint64_t worst_cost) {
  constexpr std::uint64_t kGiB = 1024;
  if (worst_cost == 0) return 10;
  return 9 - std::min(6, static_cast<int>(std::bit_width(worst_cost / kGiB)));
}

int score_of(const NodeState& node_state, const PodDemand& demand, const Policies& rules,
             const CardLoad& load, std::uint64_t worst_cost) {
  const bool packs =
      rules.nodes == podspec::PlacementPolicy::Pack && rules.gpus == podspec::PlacementPolicy::Pack;
  if (packs && !load.alone && worst_cost < kWhole) return packed_score(worst_cost);
  const auto fill = fill_of(node_state.cards);
  const auto taken = std::min(fill.free, load.mib * demand.gpus());
  if (rules.nodes == podspec::PlacementPolicy::Spread)
    return score_tenths(fill.free - taken, fill.total);
  if (rules.gpus == podspec::PlacementPolicy::Spread)
    return score_tenths(fill.total - fill.free + taken, fill.total);
  if (!load.alone) return fill.tenants > 0 ? 2 : 1;
  const auto left = fill.empty - std::min(fill.empty, demand.gpus());
  return std::max(1, 10 - static_cast<int>(left));
}

Refusal why_not_plain(const NodeState& node_state, PodDemand& demand) {
  PassCounter tally;
  auto load = demand.shared_load(0, node_state.cards.front().total_mib, node_state.node->unit_mib);
  for (const auto& card : node_state.cards) {
    if (demand.depends_on_card_size())
      load = demand.shared_load(0, card.total_mib, node_state.node->unit_mib);
    tally.count(card, load);
  }
  return tally.first_short(demand.gpus());
}

}  // namespace

Policies policies_for(const PodDemand& demand, const Options& options) {
  const auto& affinity = demand.ask().affinity;
  return {.nodes = affinity.nodes.value_or(options.nodes),
          .gpus = affinity.gpus.value_or(options.gpus)};
}

std::uint64_t cost(const Card& card, const CardLoad& load, const Policies& rules) {
  if (rules.gpus == podspec::PlacementPolicy::Spread) {
    const auto used = card.total_mib - card.free_mib + load.mib;
    return (used << 10) / std::max(card.total_mib, 1U) << 16 | card.tenants;
  }
  const auto left = card.free_mib - load.mib;
  if (left == 0 || card.tenants > 0 || load.alone) return left;
  return kWhole + left;
}

// The cost of the cheapest card that fits; kNever: none fits.
static std::uint64_t least_cost(const NodeState& node_state, const CardLoad& load,
                                const Policies& rules) {
  auto least = kNever;
  for (const auto& card : node_state.cards)
    least = std::min(least, fits(card, load) ? cost(card, load, rules) : kNever);
  return least;
}

// The cards that all containers use together, hardest part first. Each part asks for no more than
// the one before, so the cards that fit it include those that fit the one before: taking the
// cheapest card each time fails only if nothing works.
CardSet place_together(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                       CardMask among) {
  CardSet joint;
  CardMask left = among;
  for (std::uint32_t place = 0; place < demand.gpus(); ++place) {
    std::uint64_t least = ~std::uint64_t{0};
    int best = -1;
    for (CardMask rest = left; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      const auto& card = node_state.cards[static_cast<std::size_t>(i)];
      const auto& load = demand.shared_load(place, card.total_mib, node_state.node->unit_mib);
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
    left &= ~(CardMask{1} << best);
  }
  joint.found = true;
  return joint;
}

FindResult find_plain(const NodeState& node_state, PodDemand& demand, const Policies& rules) {
  const auto unit = node_state.node->unit_mib;
  auto load = demand.shared_load(0, node_state.cards.front().total_mib, unit);
  if (demand.gpus() == 1 && !demand.depends_on_card_size()) {
    const auto refusal = refused_by_maxima(node_state.maxima, load);
    if (refusal != Refusal::None) return {.refusal = refusal};
    const auto least = least_cost(node_state, load, rules);
    if (least == kNever) return {.refusal = why_not_plain(node_state, demand)};
    return {.score = score_of(node_state, demand, rules, load, least)};
  }
  std::array<std::uint64_t, 64> costs;  // NOLINT: written before it is read
  std::size_t fitting = 0;
  for (const auto& card : node_state.cards) {
    if (demand.depends_on_card_size()) load = demand.shared_load(0, card.total_mib, unit);
    if (fits(card, load)) costs[fitting++] = cost(card, load, rules);
  }
  if (fitting < demand.gpus()) return {.refusal = why_not_plain(node_state, demand)};
  const auto worst = costs.begin() + demand.gpus() - 1;
  std::nth_element(costs.begin(), worst, costs.begin() + static_cast<std::ptrdiff_t>(fitting));
  return {.score = score_of(node_state, demand, rules, load, *worst)};
}

FindResult find(const NodeState& node_state, PodDemand& demand, const Options& options,
                FindDetail answer) {
  if (demand.whole() && node_state.node->whole_gpus > 0) return {.score = 10};
  if (node_state.cards.empty()) return {.refusal = Refusal::NoSharedGpus};
  if (demand.exceeds_limits()) return {.refusal = Refusal::TooBig};
  const auto rules = policies_for(demand, options);
  if (answer == FindDetail::Score && demand.plain()) {
    auto found = find_plain(node_state, demand, rules);
    if (found.refusal == Refusal::None || !demand.has_several_containers()) return found;
    return find_apart(node_state, demand, rules, all_cards(node_state), answer);
  }
  const auto among = matching(node_state, demand);
  const auto groups = card_groups(node_state, demand, among);
  FindResult best{.refusal = Refusal::NoMatch};
  for (const CardMask group : groups) {
    auto found = find_among(node_state, demand, rules, group, answer);
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

FindResult find_among(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                      CardMask among, FindDetail answer) {
  auto joint = place_together(node_state, demand, rules, among);
  if (!joint.found) return find_apart(node_state, demand, rules, among, answer);
  const auto& first = node_state.cards[joint.cards.front()];
  const auto load = demand.shared_load(0, first.total_mib, node_state.node->unit_mib);
  FindResult found{.score = score_of(node_state, demand, rules, load, joint.worst_cost)};
  if (answer == FindDetail::Score) return found;
  if (demand.gpus() > 1) connect(node_state, demand, among, joint);
  for (std::size_t c = 0; c < demand.containers(); ++c) {
    const auto count = static_cast<std::ptrdiff_t>(demand.gpus_of(c));
    found.choice.emplace_back(joint.cards.begin(), joint.cards.begin() + count);
  }
  return found;
}

FindResult find_apart(const NodeState& node_state, PodDemand& demand, const Policies& rules,
                      CardMask among, FindDetail answer) {
  if (!demand.has_several_containers())
    return {.refusal = reason_not_together(node_state, demand, among)};
  const auto alone = reason_not_alone(node_state, demand, among);
  if (alone != Refusal::None) return {.refusal = alone};
  auto choice = place_separately(node_state, demand, rules, among);
  if (!choice)
    return {.refusal = fits_empty(node_state, demand, among) ? Refusal::Memory : Refusal::TooBig};
  FindResult found{.score = 5};
  if (answer == FindDetail::CardMask) found.choice = *std::move(choice);
  return found;
}

std::vector<CardCharge> charges(const NodeState& node_state, const PodDemand& demand,
                                const CardChoice& choice) {
  std::vector<CardCharge> made;
  for (std::size_t i = 0; i < node_state.cards.size(); ++i) {
    ContainerMask on_it = 0;
    for (std::size_t c = 0; c < choice.size(); ++c) {
      if (std::find(choice[c].begin(), choice[c].end(), i) != choice[c].end())
        on_it |= ContainerMask{1} << c;
    }
    if (on_it == 0) continue;
    const auto load = demand.load(on_it, node_state.cards[i].total_mib, node_state.node->unit_mib);
    made.push_back({.card = static_cast<std::uint16_t>(i),
                    .slots = static_cast<std::uint16_t>(load.slots),
                    .cores = load.cores,
                    .mib = load.mib});
  }
  return made;
}

}  // namespace gantry::placement
