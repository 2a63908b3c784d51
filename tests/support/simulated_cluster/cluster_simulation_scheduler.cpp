// SPDX-License-Identifier: Apache-2.0
// The scheduler's side: decide, bind, receive events; and crash in between.
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {

void ClusterSimulation::write(const placement::LogEntry& step) {
  if (options_.log) log_.push_back(placement::to_string(step));
}

void ClusterSimulation::set_node(Node& node) {
  node.observed = node.facts;
  cluster_.set_node(node.facts);
  touch(static_cast<Index>(&node - nodes_.data()));
  if (options_.log) write({.kind = placement::LogEntry::Kind::Node, .facts = node.facts});
}

void ClusterSimulation::set_quota(NamespaceState& team) {
  if (!options_.quotas) return;
  team.observed = team.quota;
  cluster_.set_quota(team.name_space, team.quota);
  if (options_.log)
    write({.kind = placement::LogEntry::Kind::Quota, .name = team.name_space, .quota = team.quota});
}

void ClusterSimulation::set_pod(Pod& pod) {
  const auto& node = nodes_[pod.node].facts.name;
  cluster_.set_pod(pod.ask, node, &pod.placement);
  set_counted(pod, true);
  if (options_.log)
    write({.kind = placement::LogEntry::Kind::Pod,
           .name = node,
           .ask = pod.ask,
           .placement = pod.placement});
}

void ClusterSimulation::remove_pod(Index number) {
  const auto uid = fmt::format("uid-{}", number);
  cluster_.remove_pod(uid);
  if (pods_[number] != nullptr) {
    set_counted(*pods_[number], false);
    forget(number);
  }
  if (options_.log) write({.kind = placement::LogEntry::Kind::PodGone, .name = uid});
}

void ClusterSimulation::release(Pod& pod) {
  cluster_.release(pod.ask.pod.uid);
  set_counted(pod, false);
  if (options_.log) write({.kind = placement::LogEntry::Kind::Release, .name = pod.ask.pod.uid});
}

Status ClusterSimulation::reserve(Pod& pod, Index node) {
  const auto& name = nodes_[node].facts.name;
  auto placement = cluster_.reserve(pod.ask, name);
  if (options_.log)
    write({.kind = placement::LogEntry::Kind::Reserve,
           .name = name,
           .ask = pod.ask,
           .placement = placement ? std::optional(*placement) : std::nullopt});
  if (!placement) return std::move(placement).error();  // nothing has changed since it fitted
  GANTRY_CHECK(take(pod, node, *std::move(placement)));
  set_counted(pod, true);
  return {};
}

// As in the kube-scheduler: takes some nodes, starting where it stopped last time, and chooses one
// of the best.
Status ClusterSimulation::schedule(Pod& pod) {
  request_.clear();
  const auto start = random_() % nodes_.size();
  const auto after = [](std::size_t at, std::size_t end) { return at + 1 < end ? at + 1 : 0; };
  for (auto at = start; request_.size() < std::min(options_.asked, nodes_.size());
       at = after(at, nodes_.size()))
    request_.push_back(names_[at]);
  cluster_.fit_all(pod.ask, request_, fits_);
  const auto first = random_() % fits_.size();
  std::size_t best = fits_.size();
  bool over_quota = false;
  auto at = first;
  for (std::size_t i = 0; i < fits_.size(); ++i, at = after(at, fits_.size())) {
    over_quota = over_quota || fits_[at].refusal == placement::Refusal::Quota;
    if (fits_[at].refusal != placement::Refusal::None) continue;
    if (best == fits_.size() || fits_[at].score > fits_[best].score) best = at;
  }
  if (best == fits_.size()) {
    ++counts_.refused;
    if (over_quota) ++counts_.over_quota;
    return {};
  }
  return place_on(pod, static_cast<Index>((start + best) % nodes_.size()));
}

Status ClusterSimulation::place_on(Pod& pod, Index node) {
  if (chance(options_.crash)) return crash();  // after the request, before a decision
  GANTRY_CHECK(reserve(pod, node));
  if (chance(options_.crash)) return crash();  // after the decision, before the Binding
  if (chance(options_.refused)) {
    release(pod);
    return {};
  }
  if (chance(options_.unanswered)) {
    ++counts_.unanswered;
    pod.bind_unknown = true;
    return random_() % 2 == 0 ? Status{} : bind(pod);
  }
  GANTRY_CHECK(bind(pod));
  if (chance(options_.crash)) return crash();  // after the Binding, before its event
  return {};
}

// All state in memory and all pending events are lost. The next scheduler lists everything.
Status ClusterSimulation::crash() {
  ++counts_.crashes;
  events_.clear();
  cluster_ = placement::Cluster();
  for (Index number = 0; number < pods_.size(); ++number) {
    if (pods_[number] == nullptr) continue;
    set_counted(*pods_[number], false);
    forget(number);
  }
  write({.kind = placement::LogEntry::Kind::Start});
  for (auto& node : nodes_) set_node(node);
  for (auto& team : teams_) set_quota(team);
  for (const auto number : existing_) {
    auto& pod = *pods_[number];
    pod.bind_unknown = false;
    if (pod.bound) set_pod(pod);
  }
  return check_equal();
}

// The same for a broken watch: pods may have been deleted meanwhile. Reservations stay until the
// list shows their result.
Status ClusterSimulation::list() {
  ++counts_.lists;
  for (auto& node : nodes_) set_node(node);
  for (auto& team : teams_) set_quota(team);
  for (Index number = 0; number < pods_.size(); ++number)
    if (pods_[number] != nullptr && !pods_[number]->exists) remove_pod(number);
  for (const auto number : existing_) {
    auto& pod = *pods_[number];
    if (pod.bound) set_pod(pod);
    if (pod.bind_unknown && !pod.bound) release(pod);
    pod.bind_unknown = false;
  }
  return check_equal();
}

void ClusterSimulation::apply_event(const Event& event) {
  if (event.what == Event::EventKind::Node) return set_node(nodes_[event.number]);
  if (event.what == Event::EventKind::Quota) return set_quota(teams_[event.number]);
  auto* pod = pods_[event.number].get();
  if (pod == nullptr || !pod->exists) return remove_pod(event.number);
  if (!pod->bound) return;
  pod->bind_unknown = false;
  set_pod(*pod);
}

}  // namespace gantry::simulate
