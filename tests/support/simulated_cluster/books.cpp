// SPDX-License-Identifier: Apache-2.0
// Who is where by the API server and by the scheduler, in books that have nothing in common with
// the scheduler's own, and the comparison of both. A step changes few nodes; only those are looked
// at after it.
#include "support/simulated_cluster/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {

void World::Sums::add(const Sums& more) {
  mib += more.mib;
  cores += more.cores;
  slots += more.slots;
}

void World::Sums::subtract(const Sums& less) {
  mib -= less.mib;
  cores -= less.cores;
  slots -= less.slots;
}

bool World::Sums::covers(const Sums& other) const {
  return mib >= other.mib && cores >= other.cores && slots >= other.slots;
}

void World::move(Pod& pod, bool Pod::*state, Sums Books::*book, bool to) {
  if (pod.*state == to) return;
  pod.*state = to;
  auto& team = teams_[pod.team].books.*book;
  for (const auto& taken : pod.taken) {
    auto& card = nodes_[pod.node].cards[taken.card].books.*book;
    if (to) {
      card.add(taken.sums);
      team.add(taken.sums);
    } else {
      card.subtract(taken.sums);
      team.subtract(taken.sums);
    }
  }
  touch(pod.node);
  touch_team(pod.team);
}

void World::forget(Number number) {
  const auto& pod = *pods_[number];
  if (!pod.there && !pod.counted) pods_[number].reset();
}

void World::touch(Number node) {
  if (nodes_[node].touched) return;
  nodes_[node].touched = true;
  touched_.push_back(node);
}

void World::touch_team(Number team) {
  if (teams_[team].touched) return;
  teams_[team].touched = true;
  touched_teams_.push_back(team);
}

Status World::check_touched() {
  for (const auto number : touched_) {
    nodes_[number].touched = false;
    GANTRY_CHECK(check_node(nodes_[number]));
  }
  touched_.clear();
  for (const auto number : touched_teams_) {
    teams_[number].touched = false;
    GANTRY_CHECK(check_team(teams_[number]));
  }
  touched_teams_.clear();
  return {};
}

Status World::check_node(const Node& node) {
  cluster_.uses(node.facts.name, uses_);
  if (uses_.size() != node.cards.size())
    return Error(Errc::Internal, fmt::format("{}: the scheduler knows {} cards of {}",
                                             node.facts.name, uses_.size(), node.cards.size()));
  for (const auto& use : uses_) {
    const auto card = std::find_if(node.cards.begin(), node.cards.end(),
                                   [&](const Card& one) { return one.uuid == use.uuid; });
    if (card == node.cards.end())
      return Error(Errc::Internal, fmt::format("{}: no such card", use.uuid));
    const auto& books = card->books;
    const Sums believed{.mib = use.mib, .cores = use.cores, .slots = use.slots};
    if (believed == books.counted && believed.covers(books.so)) continue;
    return Error(Errc::Internal,
                 fmt::format("{}: the scheduler believes {} MiB, {} %, {} slots; by what it has "
                             "decided and heard they are {}, {}, {}; so are {}, {}, {}",
                             use.uuid, believed.mib, believed.cores, believed.slots,
                             books.counted.mib, books.counted.cores, books.counted.slots,
                             books.so.mib, books.so.cores, books.so.slots));
  }
  return {};
}

Status World::check_team(const Team& team) const {
  const auto believed = cluster_.used(team.name_space);
  const auto& [so, counted] = team.books;
  if (believed.mib == counted.mib && believed.cores == counted.cores && counted.covers(so))
    return {};
  return Error(Errc::Internal,
               fmt::format("namespace {}: the scheduler believes {} MiB, {} %; by what it has "
                           "decided and heard they are {}, {}; so are {}, {}",
                           team.name_space, believed.mib, believed.cores, counted.mib,
                           counted.cores, so.mib, so.cores));
}

Status World::agree() {
  GANTRY_CHECK(cluster_.check());
  GANTRY_CHECK(check_touched());
  for (const auto& node : nodes_) {
    GANTRY_CHECK(check_node(node));
    for (const auto& [uuid, books] : node.cards)
      if (books.counted != books.so)
        return Error(Errc::Internal, fmt::format("{}: {} MiB, {} %, {} slots have leaked", uuid,
                                                 books.counted.mib - books.so.mib,
                                                 books.counted.cores - books.so.cores,
                                                 books.counted.slots - books.so.slots));
  }
  for (const auto& team : teams_) GANTRY_CHECK(check_team(team));
  return {};
}

}  // namespace gantry::simulate
