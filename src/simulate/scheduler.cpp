// SPDX-License-Identifier: Apache-2.0
// The scheduler's side: decide, bind, hear; and die in between.
#include "simulate/world.hpp"

#include <algorithm>

namespace gantry::simulate {

void World::write(const place::Step& step) {
  if (options_.log) log_.push_back(place::to_text(step));
}

void World::set_node(const ask::NodeFacts& facts) {
  heard_[facts.name] = facts;
  cluster_.set_node(facts);
  if (options_.log) write({.kind = place::Step::Kind::Node, .facts = facts});
}

void World::set_pod(const Pod& pod) {
  cluster_.set_pod(pod.ask, pod.node, &pod.placement);
  store_.insert(pod.ask.uid);
  if (options_.log)
    write({.kind = place::Step::Kind::Pod,
           .name = pod.node,
           .ask = pod.ask,
           .placement = pod.placement});
}

void World::remove_pod(const std::string& uid) {
  cluster_.remove_pod(uid);
  store_.erase(uid);
  if (options_.log) write({.kind = place::Step::Kind::PodGone, .name = uid});
}

void World::release(const std::string& uid) {
  cluster_.release(uid);
  if (options_.log) write({.kind = place::Step::Kind::Release, .name = uid});
}

Result<ask::Placement> World::reserve(const ask::PodAsk& ask, std::string_view node) {
  auto placement = cluster_.reserve(ask, node);
  if (placement) store_.insert(ask.uid);
  if (options_.log)
    write({.kind = place::Step::Kind::Reserve,
           .name = std::string(node),
           .ask = ask,
           .placement = placement ? std::optional(*placement) : std::nullopt});
  return placement;
}

// As the kube-scheduler does it: from where it stopped last time, some nodes, and of the best one.
Status World::schedule(Pod& pod) {
  question_.clear();
  const auto start = random_() % names_.size();
  for (std::size_t i = 0; i < std::min(options_.asked, names_.size()); ++i)
    question_.push_back(names_[(start + i) % names_.size()]);
  cluster_.fit_all(pod.ask, question_, fits_);
  const auto first = random_() % fits_.size();
  std::size_t best = fits_.size();
  for (std::size_t i = 0; i < fits_.size(); ++i) {
    const auto at = (first + i) % fits_.size();
    if (fits_[at].refusal != place::Refusal::None) continue;
    if (best == fits_.size() || fits_[at].score > fits_[best].score) best = at;
  }
  if (best == fits_.size()) {
    ++counts_.refused;
    return {};
  }
  return place_on(pod, question_[best]);
}

Status World::place_on(Pod& pod, std::string_view node) {
  if (chance(options_.crash)) return crash();  // asked, nothing decided
  auto placement = reserve(pod.ask, node);
  if (!placement) return std::move(placement).error();  // nothing happened since it fitted
  if (chance(options_.crash)) return crash();           // decided, nothing sent
  if (chance(options_.refused)) {
    release(pod.ask.uid);
    return {};
  }
  if (chance(options_.unanswered)) {
    ++counts_.unanswered;
    pod.tried = true;
    return random_() % 2 == 0 ? Status{} : bind(pod, std::string(node), *placement);
  }
  GANTRY_CHECK(bind(pod, std::string(node), *placement));
  if (chance(options_.crash)) return crash();  // done, the event is under way
  return {};
}

// All that was in memory is gone; what was under way to the dead goes nowhere. Its successor lists.
Status World::crash() {
  ++counts_.crashes;
  events_.clear();
  cluster_ = place::Cluster();
  heard_.clear();
  store_.clear();
  write({.kind = place::Step::Kind::Start});
  for (const auto& [name, facts] : nodes_) set_node(facts);
  for (const auto& uid : uids_) {
    auto& pod = pods_.at(uid);
    pod.tried = false;
    if (!pod.node.empty()) set_pod(pod);
  }
  GANTRY_CHECK(cluster_.check());
  return compare();
}

// The same for a watch that broke: what is gone was gone while nobody looked. Reservations stay
// until the list says what became of them.
Status World::list() {
  ++counts_.lists;
  for (const auto& [name, facts] : nodes_) set_node(facts);
  const std::vector<std::string> before(store_.begin(), store_.end());
  for (const auto& uid : before)
    if (pods_.find(uid) == pods_.end()) remove_pod(uid);
  for (const auto& uid : uids_) {
    auto& pod = pods_.at(uid);
    if (!pod.node.empty()) set_pod(pod);
    if (pod.tried && pod.node.empty()) release(uid);
    pod.tried = false;
  }
  GANTRY_CHECK(cluster_.check());
  return compare();
}

void World::hear(const Event& event) {
  if (!event.node.empty()) {
    set_node(nodes_.at(event.node));
    return;
  }
  const auto found = pods_.find(event.uid);
  if (found == pods_.end()) {
    remove_pod(event.uid);
    return;
  }
  if (found->second.node.empty()) return;
  found->second.tried = false;
  set_pod(found->second);
}

}  // namespace gantry::simulate
