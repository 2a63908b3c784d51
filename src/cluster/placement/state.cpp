// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/state_internal.hpp"

#include <algorithm>
#include <limits>

namespace gantry::placement {
namespace {

constexpr std::size_t kMaxOwnCardsPerNode = 64;  // a set of cards is the bits of a word
constexpr std::size_t kMaxCardsPerNode = 1024;   // including those that only pods name

std::uint16_t small(std::uint64_t value) {
  return static_cast<std::uint16_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint16_t>::max()));
}

std::uint32_t clamped(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

Card card_of(const podspec::CardInfo& facts, const CardTotals& sums, bool own) {
  return {
      .total_mib = clamped(facts.mib),
      .free_mib = sums.mib >= facts.mib ? 0 : clamped(facts.mib - sums.mib),
      .cores = small(sums.cores),
      .slots_free = sums.slots >= facts.slots ? std::uint16_t{0} : small(facts.slots - sums.slots),
      .tenants = small(sums.slots),
      .numa = static_cast<std::int8_t>(std::clamp(facts.numa, -1, 127)),
      .usable = own && facts.usable()};
}

template <class Id, class Record>
Id fresh(std::vector<Id>& free, std::vector<Record>& records) {
  if (free.empty()) {
    records.emplace_back();
    return static_cast<Id>(records.size() - 1);
  }
  const Id id = free.back();
  free.pop_back();
  return id;
}

}  // namespace

CardMaxima maxima_of(std::span<const Card> cards) {
  CardMaxima maxima;
  for (const auto& card : cards) {
    const auto slots = std::uint32_t{card.slots_free} + card.tenants;
    if (slots == 0) continue;
    maxima.slots = maxima.slots == 0 ? slots : std::min(maxima.slots, slots);
    maxima.total_mib = std::max(maxima.total_mib, card.total_mib);
    if (!card.usable) continue;
    maxima.usable_mib = std::max(maxima.usable_mib, card.total_mib);
    maxima.free_mib = std::max(maxima.free_mib, card.free_mib);
  }
  return maxima;
}

// ---- names

std::optional<NodeId> Cluster::State::find_node(std::string_view name) const {
  return node_names.find(name);
}

NodeId Cluster::State::node(std::string_view name) {
  if (const auto found = find_node(name)) return *found;
  const auto id = fresh(free_nodes, nodes);
  more.resize(nodes.size());
  node_names.insert(name, id);
  return id;
}

void Cluster::State::forget_node(NodeId id) {
  if (nodes[id].known || !more[id].pods.empty()) return;
  if (nodes[id].room > 0) free_cards.emplace_back(nodes[id].room, nodes[id].first);
  node_names.erase(std::string(node_names[id]));
  nodes[id] = {};
  more[id] = {};
  free_nodes.push_back(id);
}

NamespaceId Cluster::State::space(std::string_view name) {
  const auto found = namespace_ids.find(name);
  if (found != namespace_ids.end()) return found->second;
  const auto id = fresh(free_namespaces, namespaces);
  namespaces[id].name = std::string(name);
  namespace_ids.emplace(name, id);
  return id;
}

void Cluster::State::forget_namespace(NamespaceId id) {
  auto& space = namespaces[id];
  if (space.pods > 0 || space.quota.mib > 0 || space.quota.cores > 0) return;
  namespace_ids.erase(space.name);
  space = {};
  free_namespaces.push_back(id);
}

std::optional<NamespaceRecord> Cluster::State::namespace_without(std::string_view name,
                                                                 std::optional<PodId> gone) const {
  const auto found = namespace_ids.find(name);
  if (found == namespace_ids.end()) return std::nullopt;
  auto space = namespaces[found->second];
  if (space.quota.mib == 0 && space.quota.cores == 0) return std::nullopt;
  if (gone && pods[*gone].space == found->second) {
    space.mib -= pods[*gone].quota_mib;
    space.cores -= pods[*gone].quota_cores;
  }
  return space;
}

void Cluster::State::prefetch(std::span<const std::string_view> names,
                              std::array<std::uint64_t, kPrefetchNodes>& hashes) const {
  const auto count = std::min(names.size(), kPrefetchNodes);
  for (std::size_t i = 0; i < count; ++i) {
    hashes[i] = NameTable::hash(names[i]);
    node_names.prefetch(hashes[i]);
  }
  for (std::size_t i = 0; i < count; ++i) node_names.prefetch_name(hashes[i]);
  for (std::size_t i = 0; i < count; ++i) {
    node_names.prefetch_text(hashes[i]);
    const auto id = node_names.guess(hashes[i]);
    if (id < nodes.size()) __builtin_prefetch(&nodes[id]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = node_names.guess(hashes[i]);
    if (id >= nodes.size() || nodes[id].own == 0) continue;
    __builtin_prefetch(&cards[nodes[id].first]);
    __builtin_prefetch(&cards[nodes[id].first + nodes[id].own / 2]);
  }
}

// ---- cards

void Cluster::State::make_room(NodeId id, std::size_t count) {
  auto& at = nodes[id];
  if (count <= at.room) return;
  const auto enough = std::find_if(free_cards.begin(), free_cards.end(),
                                   [&](const auto& block) { return block.first == count; });
  std::uint32_t first = 0;
  if (enough != free_cards.end()) {
    first = enough->second;
    free_cards.erase(enough);
  } else {
    first = static_cast<std::uint32_t>(cards.size());
    cards.resize(cards.size() + count);
    accounts.resize(cards.size());
  }
  for (std::uint32_t i = 0; i < at.count; ++i) {
    cards[first + i] = cards[at.first + i];
    accounts[first + i] = std::move(accounts[at.first + i]);
  }
  if (at.room > 0) free_cards.emplace_back(at.room, at.first);
  at.first = first;
  at.room = small(count);
}

void Cluster::State::refresh(NodeId id, std::uint16_t card) {
  auto& at = nodes[id];
  auto& account = accounts[at.first + card];
  if (!account.exceeds_capacity()) account.over_reported = false;
  cards[at.first + card] = card_of(account.facts, account.sums, card < at.own);
  if (card < at.own) at.maxima = maxima_of(std::span(cards).subspan(at.first, at.own));
}

std::vector<Card> Cluster::State::cards_without(NodeId id, std::span<const PodId> gone) const {
  const auto there = node_state(id);
  std::vector<Card> left(there.cards.begin(), there.cards.end());
  std::vector<CardTotals> sums;
  for (const auto& account : there.accounts) sums.push_back(account.sums);
  for (const auto pod : gone) {
    for (const auto& charge : pods[pod].charges) {
      if (charge.card >= sums.size()) continue;
      subtract(sums[charge.card], charge);
    }
  }
  for (std::size_t i = 0; i < left.size(); ++i)
    if (sums[i] != there.accounts[i].sums)
      left[i] = card_of(there.accounts[i].facts, sums[i], true);
  return left;
}

std::uint16_t Cluster::State::card(NodeId id, std::string_view uuid) {
  const auto first = nodes[id].first;
  for (std::uint16_t i = 0; i < nodes[id].count; ++i)
    if (accounts[first + i].facts.uuid.text == uuid) return i;
  if (nodes[id].count >= kMaxCardsPerNode) return static_cast<std::uint16_t>(kMaxCardsPerNode);
  const auto place = nodes[id].count;
  // Doubles the size each time, because every step leaves a free block behind.
  if (place == nodes[id].room) make_room(id, std::max<std::size_t>(2 * std::size_t{place}, 8));
  accounts[nodes[id].first + place] = {.facts = {.uuid = {std::string(uuid)}, .slots = 0}};
  nodes[id].count = small(place + std::size_t{1});
  refresh(id, place);
  return place;
}

// Pods keep their charges by the card's UUID. A card that the node no longer lists stays as an
// unknown card until no pod is on it, in case it comes back.
void Cluster::State::set_cards(NodeId id, const std::vector<podspec::CardInfo>& facts) {
  std::vector<std::string> old;
  for (std::uint16_t i = 0; i < nodes[id].count; ++i)
    old.push_back(accounts[nodes[id].first + i].facts.uuid.text);
  const auto own = std::min(facts.size(), kMaxOwnCardsPerNode);
  nodes[id].count = 0;  // nothing of it is kept
  make_room(id, own);
  auto& at = nodes[id];
  at.count = at.own = small(own);
  at.maxima = {};
  for (std::size_t i = 0; i < own; ++i) accounts[at.first + i] = {.facts = facts[i]};
  for (const PodId pod_id : more[id].pods) {
    auto& pod = pods[pod_id];
    if (pod.charged_to_every_card()) {
      discount(pod);
      pod.charges = charges_for_every_card(id, *pod.unplaced);
      if (nodes[id].whole_gpus > 0 && !pod.unplaced->shared()) pod.unplaced.reset();
      count(pod);
    } else {
      for (auto& charge : pod.charges) {
        if (charge.card < old.size()) charge.card = card(id, old[charge.card]);
      }
    }
    charge(pod);
  }
  for (std::uint16_t i = 0; i < nodes[id].count; ++i) {
    accounts[nodes[id].first + i].over_reported = true;
    refresh(id, i);
  }
}

}  // namespace gantry::placement
