// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <algorithm>

namespace gantry::simulate {

ClusterSimulation::ClusterSimulation(const SimulationOptions& options)
    : options_(options), random_(options.seed), quota_random_(options.seed) {
  write({.kind = placement::LogEntry::Kind::Start});
  for (std::size_t i = 0; i < options_.nodes; ++i) add_node(i);
  add_teams();
  for (auto& node : nodes_) {
    names_.push_back(node.facts.name);
    set_node(node);
  }
  for (auto& team : teams_) set_quota(team);
}

Status ClusterSimulation::step() {
  if (chance(options_.node_change)) change_random_node();
  if (options_.quotas && options_.quota_change > 0 && quota_random_() % options_.quota_change == 0)
    change_random_quota();
  if (chance(options_.broken)) {
    events_.clear();
    GANTRY_CHECK(list());
  }
  const auto full = existing_.size() * 100 / options_.pods_at_once;
  const bool comes = random_() % 100 >= std::min<std::size_t>(full / 2, 95);
  GANTRY_CHECK(comes ? arrive() : leave());
  // Usually all events arrive before the next request, sometimes only a part.
  deliver(chance(options_.late) ? random_() % 3 : events_.size());
  return check_touched();
}

Status ClusterSimulation::settle() {
  deliver(events_.size());
  for (const auto number : existing_) {
    auto& pod = *pods_[number];
    if (!pod.bind_unknown) continue;
    pod.bind_unknown = false;
    if (!pod.bound) release(pod);
  }
  return check_equal();
}

Status ClusterSimulation::empty() {
  while (!existing_.empty()) GANTRY_CHECK(leave());
  return settle();
}

Status ClusterSimulation::arrive() {
  const auto number = static_cast<Index>(pods_.size());
  auto& pod = *pods_.emplace_back(std::make_unique<Pod>());
  pod.number = number;
  pod.team = number % static_cast<Index>(teams_.size());
  pod.ask = random_request(number);
  existing_.push_back(number);
  ++counts_.came;
  return schedule(pod);
}

Status ClusterSimulation::leave() {
  if (existing_.empty()) return {};
  const auto at = random_() % existing_.size();
  std::swap(existing_[at], existing_.back());
  const auto number = existing_.back();
  auto& pod = *pods_[number];
  // Pods without a node wait and try once more before they give up.
  if (!pod.bound && !pod.bind_unknown) GANTRY_CHECK(schedule(pod));
  set_bound(pod, false);
  pod.exists = false;
  existing_.pop_back();
  ++counts_.left;
  forget(number);
  enqueue_event({.what = Event::EventKind::Pod, .number = number});
  return {};
}

void ClusterSimulation::change_random_node() {
  ++counts_.node_changes;
  const auto number = static_cast<Index>(random_() % nodes_.size());
  auto& facts = nodes_[number].facts;
  auto& card = facts.cards[random_() % facts.cards.size()];
  switch (random_() % 4) {
    case 0: card.healthy = !card.healthy; break;
    case 1: card.mib = card.mib > 20'000 ? card.mib - 4096 : card.mib + 40'960; break;
    case 2: card.slots = card.slots == 32 ? 8 : 32; break;
    default:  // it comes back under another number
      std::rotate(facts.cards.begin(), facts.cards.begin() + 1, facts.cards.end());
      for (std::uint32_t i = 0; i < facts.cards.size(); ++i) facts.cards[i].index = i;
  }
  enqueue_event({.what = Event::EventKind::Node, .number = number});
}

// The new quota may be below what its pods have: then no pod is added.
void ClusterSimulation::change_random_quota() {
  ++counts_.quota_changes;
  const auto number = static_cast<Index>(quota_random_() % teams_.size());
  const auto mib_percent = 70 + quota_random_() % 80;
  const auto cores_percent = 30 + quota_random_() % 50;
  teams_[number].quota =
      quota_random_() % 4 == 0 ? placement::Quota{} : random_quota(mib_percent, cores_percent);
  enqueue_event({.what = Event::EventKind::Quota, .number = number});
}

}  // namespace gantry::simulate
