// SPDX-License-Identifier: Apache-2.0
// The scheduler's side: decide, bind, hear; and die in between.
#include "support/simulated_cluster/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {

void World::write(const placement::Step& step) {
  if (options_.log) log_.push_back(placement::to_text(step));
}

void World::set_node(Node& node) {
  node.heard = node.facts;
  cluster_.set_node(node.facts);
  touch(static_cast<Number>(&node - nodes_.data()));
  if (options_.log) write({.kind = placement::Step::Kind::Node, .facts = node.facts});
}

void World::set_quota(Team& team) {
  if (!options_.quotas) return;
  team.heard = team.quota;
  cluster_.set_quota(team.name_space, team.quota);
  if (options_.log)
    write({.kind = placement::Step::Kind::Quota, .name = team.name_space, .quota = team.quota});
}

void World::set_pod(Pod& pod) {
  const auto& node = nodes_[pod.node].facts.name;
  cluster_.set_pod(pod.ask, node, &pod.placement);
  set_counted(pod, true);
  if (options_.log)
    write({.kind = placement::Step::Kind::Pod,
           .name = node,
           .ask = pod.ask,
           .placement = pod.placement});
}

void World::remove_pod(Number number) {
  const auto uid = fmt::format("uid-{}", number);
  cluster_.remove_pod(uid);
  if (pods_[number] != nullptr) {
    set_counted(*pods_[number], false);
    forget(number);
  }
  if (options_.log) write({.kind = placement::Step::Kind::PodGone, .name = uid});
}

void World::release(Pod& pod) {
  cluster_.release(pod.ask.uid);
  set_counted(pod, false);
  if (options_.log) write({.kind = placement::Step::Kind::Release, .name = pod.ask.uid});
}

Status World::reserve(Pod& pod, Number node) {
  const auto& name = nodes_[node].facts.name;
  auto placement = cluster_.reserve(pod.ask, name);
  if (options_.log)
    write({.kind = placement::Step::Kind::Reserve,
           .name = name,
           .ask = pod.ask,
           .placement = placement ? std::optional(*placement) : std::nullopt});
  if (!placement) return std::move(placement).error();  // nothing happened since it fitted
  GANTRY_CHECK(take(pod, node, *std::move(placement)));
  set_counted(pod, true);
  return {};
}

// As the kube-scheduler does it: from where it stopped last time, some nodes, and of the best one.
Status World::schedule(Pod& pod) {
  question_.clear();
  const auto start = random_() % nodes_.size();
  const auto after = [](std::size_t at, std::size_t end) { return at + 1 < end ? at + 1 : 0; };
  for (auto at = start; question_.size() < std::min(options_.asked, nodes_.size());
       at = after(at, nodes_.size()))
    question_.push_back(names_[at]);
  cluster_.fit_all(pod.ask, question_, fits_);
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
  return place_on(pod, static_cast<Number>((start + best) % nodes_.size()));
}

Status World::place_on(Pod& pod, Number node) {
  if (chance(options_.crash)) return crash();  // asked, nothing decided
  GANTRY_CHECK(reserve(pod, node));
  if (chance(options_.crash)) return crash();  // decided, nothing sent
  if (chance(options_.refused)) {
    release(pod);
    return {};
  }
  if (chance(options_.unanswered)) {
    ++counts_.unanswered;
    pod.tried = true;
    return random_() % 2 == 0 ? Status{} : bind(pod);
  }
  GANTRY_CHECK(bind(pod));
  if (chance(options_.crash)) return crash();  // done, the event is under way
  return {};
}

// All that was in memory is gone; what was under way to the dead goes nowhere. Its successor lists.
Status World::crash() {
  ++counts_.crashes;
  events_.clear();
  cluster_ = placement::Cluster();
  for (Number number = 0; number < pods_.size(); ++number) {
    if (pods_[number] == nullptr) continue;
    set_counted(*pods_[number], false);
    forget(number);
  }
  write({.kind = placement::Step::Kind::Start});
  for (auto& node : nodes_) set_node(node);
  for (auto& team : teams_) set_quota(team);
  for (const auto number : there_) {
    auto& pod = *pods_[number];
    pod.tried = false;
    if (pod.bound) set_pod(pod);
  }
  return agree();
}

// The same for a watch that broke: what is gone was gone while nobody looked. Reservations stay
// until the list says what became of them.
Status World::list() {
  ++counts_.lists;
  for (auto& node : nodes_) set_node(node);
  for (auto& team : teams_) set_quota(team);
  for (Number number = 0; number < pods_.size(); ++number)
    if (pods_[number] != nullptr && !pods_[number]->there) remove_pod(number);
  for (const auto number : there_) {
    auto& pod = *pods_[number];
    if (pod.bound) set_pod(pod);
    if (pod.tried && !pod.bound) release(pod);
    pod.tried = false;
  }
  return agree();
}

void World::hear(const Event& event) {
  if (event.what == Event::Of::Node) return set_node(nodes_[event.number]);
  if (event.what == Event::Of::Quota) return set_quota(teams_[event.number]);
  auto* pod = pods_[event.number].get();
  if (pod == nullptr || !pod->there) return remove_pod(event.number);
  if (!pod->bound) return;
  pod->tried = false;
  set_pod(*pod);
}

}  // namespace gantry::simulate
