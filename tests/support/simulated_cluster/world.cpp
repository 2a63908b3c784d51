// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_cluster/world.hpp"

#include <algorithm>

namespace gantry::simulate {

World::World(const Options& options)
    : options_(options), random_(options.seed), quota_random_(options.seed) {
  write({.kind = placement::Step::Kind::Start});
  for (std::size_t i = 0; i < options_.nodes; ++i) add_node(i);
  add_teams();
  for (auto& node : nodes_) {
    names_.push_back(node.facts.name);
    set_node(node);
  }
  for (auto& team : teams_) set_quota(team);
}

Status World::step() {
  if (chance(options_.node_change)) change_some_node();
  if (options_.quotas && options_.quota_change > 0 && quota_random_() % options_.quota_change == 0)
    change_some_quota();
  if (chance(options_.broken)) {
    events_.clear();
    GANTRY_CHECK(list());
  }
  const auto full = there_.size() * 100 / options_.pods_at_once;
  const bool comes = random_() % 100 >= std::min<std::size_t>(full / 2, 95);
  GANTRY_CHECK(comes ? arrive() : leave());
  // Mostly all of it arrives before the next question, sometimes only a part.
  deliver(chance(options_.late) ? random_() % 3 : events_.size());
  return check_touched();
}

Status World::settle() {
  deliver(events_.size());
  for (const auto number : there_) {
    auto& pod = *pods_[number];
    if (!pod.tried) continue;
    pod.tried = false;
    if (!pod.bound) release(pod);
  }
  return agree();
}

Status World::empty() {
  while (!there_.empty()) GANTRY_CHECK(leave());
  return settle();
}

Status World::arrive() {
  const auto number = static_cast<Number>(pods_.size());
  auto& pod = *pods_.emplace_back(std::make_unique<Pod>());
  pod.number = number;
  pod.team = number % static_cast<Number>(teams_.size());
  pod.ask = some_ask(number);
  there_.push_back(number);
  ++counts_.came;
  return schedule(pod);
}

Status World::leave() {
  if (there_.empty()) return {};
  const auto at = random_() % there_.size();
  std::swap(there_[at], there_.back());
  const auto number = there_.back();
  auto& pod = *pods_[number];
  // Pods that found no place wait, and try once more before they give up.
  if (!pod.bound && !pod.tried) GANTRY_CHECK(schedule(pod));
  set_bound(pod, false);
  pod.there = false;
  there_.pop_back();
  ++counts_.left;
  forget(number);
  tell({.what = Event::Of::Pod, .number = number});
  return {};
}

void World::change_some_node() {
  ++counts_.node_changes;
  const auto number = static_cast<Number>(random_() % nodes_.size());
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
  tell({.what = Event::Of::Node, .number = number});
}

// Also to less than its pods have: then nobody joins them.
void World::change_some_quota() {
  ++counts_.quota_changes;
  const auto number = static_cast<Number>(quota_random_() % teams_.size());
  const auto mib_percent = 70 + quota_random_() % 80;
  const auto cores_percent = 30 + quota_random_() % 50;
  teams_[number].quota =
      quota_random_() % 4 == 0 ? placement::Quota{} : some_quota(mib_percent, cores_percent);
  tell({.what = Event::Of::Quota, .number = number});
}

}  // namespace gantry::simulate
