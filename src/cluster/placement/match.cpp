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

bool one_of(std::string_view text, const std::vector<std::string>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool matches(const podspec::CardFacts& card, const podspec::Wishes& wishes) {
  if (!wishes.types.empty() && !any_part(card.model, wishes.types)) return false;
  if (any_part(card.model, wishes.not_types)) return false;
  if (!wishes.uuids.empty() && !one_of(card.uuid, wishes.uuids)) return false;
  return !one_of(card.uuid, wishes.not_uuids);
}

}  // namespace

Cards all_cards(const Ground& ground) {
  const auto count = ground.cards.size();
  return count >= 64 ? ~Cards{0} : (Cards{1} << count) - 1;
}

Cards matching(const Ground& ground, const Want& want) {
  if (!want.picky()) return all_cards(ground);
  Cards good = 0;
  for (std::size_t i = 0; i < ground.books.size(); ++i)
    if (matches(ground.books[i].facts, want.ask().wishes)) good |= Cards{1} << i;
  return good;
}

std::vector<Cards> groups_of(const Ground& ground, const Want& want, Cards among) {
  if (among == 0) return {};
  if (want.ask().wishes.near != podspec::Near::Numa) return {among};
  std::vector<Cards> groups;
  for (Cards left = among; left != 0;) {
    const auto numa = ground.cards[static_cast<std::size_t>(std::countr_zero(left))].numa;
    Cards group = 0;
    for (Cards rest = left; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      if (ground.cards[static_cast<std::size_t>(i)].numa == numa) group |= Cards{1} << i;
    }
    groups.push_back(group);
    left &= ~group;
  }
  return groups;
}

// Only among cards that give the same: then any that fits will do for the ask, and what the set
// costs elsewhere is what is left of the connections.
void connect(const Ground& ground, Want& want, Cards among, Joint& joint) {
  const auto unit = ground.node->unit_mib;
  const bool alone = want.shared_load(0, ground.cards.front().total_mib, unit).alone;
  const bool wished = want.ask().wishes.near == podspec::Near::Links;
  if (!want.uniform() || want.gpus() < 2 || !(alone || wished)) return;
  std::vector<int> available;
  for (Cards rest = among; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    const auto& card = ground.cards[static_cast<std::size_t>(i)];
    if (fits(card, want.shared_load(0, card.total_mib, unit))) available.push_back(i);
  }
  const auto count = ground.cards.size();
  topology::Scores scores(count, std::vector<topology::Score>(count, 0));
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = ground.books[i].facts.links;
    for (std::size_t j = 0; j < std::min(count, row.size()); ++j)
      if (i != j) scores[i][j] = row[j];
  }
  const auto best = topology::best_set(scores, available, {}, static_cast<int>(want.gpus()));
  joint.cards.assign(best.chosen.begin(), best.chosen.end());
}

}  // namespace gantry::placement
