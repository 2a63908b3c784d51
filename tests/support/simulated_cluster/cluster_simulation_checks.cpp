// SPDX-License-Identifier: Apache-2.0
// Accounts of the pods on each node, by the API server and by the scheduler, independent of the
// scheduler's own code, and their comparison. A step changes few nodes; only those are checked
// after it.
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {

void ClusterSimulation::Amounts::add(const Amounts& more) {
  mib += more.mib;
  cores += more.cores;
  slots += more.slots;
}

void ClusterSimulation::Amounts::subtract(const Amounts& less) {
  mib -= less.mib;
  cores -= less.cores;
  slots -= less.slots;
}

bool ClusterSimulation::Amounts::covers(const Amounts& other) const {
  return mib >= other.mib && cores >= other.cores && slots >= other.slots;
}

void ClusterSimulation::move(Pod& pod, bool Pod::*state, Amounts Totals::*account, bool to) {
  if (pod.*state == to) return;
  pod.*state = to;
  auto& team = teams_[pod.team].totals.*account;
  for (const auto& taken : pod.taken) {
    auto& card = nodes_[pod.node].cards[taken.card].totals.*account;
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

void ClusterSimulation::forget(Index number) {
  const auto& pod = *pods_[number];
  if (!pod.exists && !pod.counted) pods_[number].reset();
}

void ClusterSimulation::touch(Index node) {
  if (nodes_[node].touched) return;
  nodes_[node].touched = true;
  touched_.push_back(node);
}

void ClusterSimulation::touch_team(Index team) {
  if (teams_[team].touched) return;
  teams_[team].touched = true;
  touched_teams_.push_back(team);
}

Status ClusterSimulation::check_touched() {
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

Status ClusterSimulation::check_node(const Node& node) {
  cluster_.uses(node.facts.name, uses_);
  if (uses_.size() != node.cards.size())
    return Error(Errc::Internal, fmt::format("{}: the scheduler knows {} cards of {}",
                                             node.facts.name, uses_.size(), node.cards.size()));
  for (const auto& use : uses_) {
    const auto card = std::find_if(node.cards.begin(), node.cards.end(),
                                   [&](const Card& one) { return one.uuid.text == use.uuid; });
    if (card == node.cards.end())
      return Error(Errc::Internal, fmt::format("{}: no such card", use.uuid));
    const auto& totals = card->totals;
    const Amounts believed{.mib = use.mib, .cores = use.cores, .slots = use.slots};
    if (believed == totals.counted && believed.covers(totals.actual)) continue;
    return Error(Errc::Internal,
                 fmt::format("{}: the scheduler believes {} MiB, {} %, {} slots; by what it has "
                             "decided and heard they are {}, {}, {}; so are {}, {}, {}",
                             use.uuid, believed.mib, believed.cores, believed.slots,
                             totals.counted.mib, totals.counted.cores, totals.counted.slots,
                             totals.actual.mib, totals.actual.cores, totals.actual.slots));
  }
  return {};
}

Status ClusterSimulation::check_team(const NamespaceState& team) const {
  const auto believed = cluster_.used(team.name_space);
  const auto& [actual, counted] = team.totals;
  if (believed.mib == counted.mib && believed.cores == counted.cores && counted.covers(actual))
    return {};
  return Error(Errc::Internal,
               fmt::format("namespace {}: the scheduler believes {} MiB, {} %; by what it has "
                           "decided and heard they are {}, {}; so are {}, {}",
                           team.name_space, believed.mib, believed.cores, counted.mib,
                           counted.cores, actual.mib, actual.cores));
}

Status ClusterSimulation::check_equal() {
  GANTRY_CHECK(cluster_.check());
  GANTRY_CHECK(check_touched());
  for (const auto& node : nodes_) {
    GANTRY_CHECK(check_node(node));
    for (const auto& [uuid, totals] : node.cards)
      if (totals.counted != totals.actual)
        return Error(Errc::Internal, fmt::format("{}: {} MiB, {} %, {} slots have leaked",
                                                 uuid.text, totals.counted.mib - totals.actual.mib,
                                                 totals.counted.cores - totals.actual.cores,
                                                 totals.counted.slots - totals.actual.slots));
  }
  for (const auto& team : teams_) GANTRY_CHECK(check_team(team));
  return {};
}

}  // namespace gantry::simulate
