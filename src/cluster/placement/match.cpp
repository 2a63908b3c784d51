// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/find_internal.hpp"
#include "gpu/topology/best_set.hpp"

#include <algorithm>
#include <bit>

namespace gantry::placement {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool has_part(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

bool any_part(std::string_view text, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return has_part(text, part); });
}

bool is_among(const std::vector<model::GpuUuid>& list, const model::GpuUuid& uuid) {
  return std::find(list.begin(), list.end(), uuid) != list.end();
}

bool matches(const podspec::CardInfo& card, const podspec::Affinity& affinity) {
  if (!affinity.types.empty() && !any_part(card.model, affinity.types)) return false;
  if (any_part(card.model, affinity.excluded_types)) return false;
  if (!affinity.uuids.empty() && !is_among(affinity.uuids, card.uuid)) return false;
  return !is_among(affinity.excluded_uuids, card.uuid);
}

}  // namespace

CardMask all_cards(const NodeState& node_state) {
  const auto count = node_state.cards.size();
  return count >= 64 ? ~CardMask{0} : (CardMask{1} << count) - 1;
}

CardMask matching(const NodeState& node_state, const PodDemand& demand) {
  if (!demand.has_card_filter()) return all_cards(node_state);
  CardMask good = 0;
  for (std::size_t i = 0; i < node_state.accounts.size(); ++i)
    if (matches(node_state.accounts[i].facts, demand.ask().affinity)) good |= CardMask{1} << i;
  return good;
}

std::vector<CardMask> card_groups(const NodeState& node_state, const PodDemand& demand,
                                  CardMask among) {
  if (among == 0) return {};
  if (demand.ask().affinity.topology != podspec::TopologyPolicy::Numa) return {among};
  std::vector<CardMask> groups;
  for (CardMask left = among; left != 0;) {
    const auto numa = node_state.cards[static_cast<std::size_t>(std::countr_zero(left))].numa;
    CardMask group = 0;
    for (CardMask rest = left; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      if (node_state.cards[static_cast<std::size_t>(i)].numa == numa) group |= CardMask{1} << i;
    }
    groups.push_back(group);
    left &= ~group;
  }
  return groups;
}

// Only if the pod needs the same of each card: then any card that fits is good for the request, and
// only the connections among the remaining cards matter.
void connect(const NodeState& node_state, PodDemand& demand, CardMask among, CardSet& joint) {
  const auto unit = node_state.node->unit_mib;
  const bool alone = demand.shared_load(0, node_state.cards.front().total_mib, unit).alone;
  const bool wished = demand.ask().affinity.topology == podspec::TopologyPolicy::Links;
  if (!demand.uniform() || demand.gpus() < 2 || !(alone || wished)) return;
  std::vector<int> available;
  for (CardMask rest = among; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    const auto& card = node_state.cards[static_cast<std::size_t>(i)];
    if (fits(card, demand.shared_load(0, card.total_mib, unit))) available.push_back(i);
  }
  const auto count = node_state.cards.size();
  topology::LinkScores scores(count, std::vector<topology::LinkScore>(count, 0));
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = node_state.accounts[i].facts.links;
    for (std::size_t j = 0; j < std::min(count, row.size()); ++j)
      if (i != j) scores[i][j] = row[j];
  }
  const auto best = topology::best_set(scores, available, {}, static_cast<int>(demand.gpus()));
  joint.cards.assign(best.chosen.begin(), best.chosen.end());
}

}  // namespace gantry::placement
