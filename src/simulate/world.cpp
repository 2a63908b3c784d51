// SPDX-License-Identifier: Apache-2.0
#include "simulate/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {

World::World(const Options& options) : options_(options), random_(options.seed) {
  write({.kind = place::Step::Kind::Start});
  for (std::size_t i = 0; i < options_.nodes; ++i) add_node(i);
  for (const auto& [name, facts] : nodes_) {
    names_.push_back(name);
    set_node(facts);
  }
}

Status World::step() {
  if (chance(options_.node_change)) change_some_node();
  if (chance(options_.broken)) {
    events_.clear();
    GANTRY_CHECK(list());
  }
  const auto full = uids_.size() * 100 / options_.pods_at_once;
  const bool comes = random_() % 100 >= std::min<std::size_t>(full / 2, 95);
  GANTRY_CHECK(comes ? arrive() : leave());
  // Mostly all of it arrives before the next question, sometimes only a part.
  return deliver(chance(options_.late) ? random_() % 3 : events_.size());
}

Status World::settle() {
  GANTRY_CHECK(deliver(events_.size()));
  std::vector<std::string> open;
  for (const auto& uid : uids_)
    if (pods_.at(uid).tried) open.push_back(uid);
  for (const auto& uid : open) {
    auto& pod = pods_.at(uid);
    pod.tried = false;
    if (pod.node.empty()) release(uid);
  }
  GANTRY_CHECK(cluster_.check());
  return compare();
}

Status World::empty() {
  while (!uids_.empty()) GANTRY_CHECK(leave());
  return settle();
}

Status World::arrive() {
  auto ask = some_ask();
  const auto uid = ask.uid;
  auto& pod = pods_[uid];
  pod.ask = std::move(ask);
  uids_.push_back(uid);
  ++counts_.came;
  return schedule(pod);
}

Status World::leave() {
  if (uids_.empty()) return {};
  const auto at = random_() % uids_.size();
  std::swap(uids_[at], uids_.back());
  const auto uid = uids_.back();
  const auto found = pods_.find(uid);
  auto& pod = found->second;
  // Pods that found no place wait, and try once more before they give up.
  if (pod.node.empty() && !pod.tried) {
    GANTRY_CHECK(schedule(pod));
  }
  const auto again = pods_.find(uid);
  if (!again->second.node.empty()) unbind(again->second);
  pods_.erase(again);
  uids_.pop_back();
  ++counts_.left;
  tell({.uid = uid});
  return {};
}

void World::change_some_node() {
  ++counts_.node_changes;
  const auto& name = names_[random_() % names_.size()];
  auto& facts = nodes_.at(name);
  auto& card = facts.cards[random_() % facts.cards.size()];
  switch (random_() % 4) {
    case 0: card.healthy = !card.healthy; break;
    case 1: card.mib = card.mib > 20'000 ? card.mib - 4096 : card.mib + 40'960; break;
    case 2: card.slots = card.slots == 32 ? 8 : 32; break;
    default:  // it comes back under another number
      std::rotate(facts.cards.begin(), facts.cards.begin() + 1, facts.cards.end());
      for (std::uint32_t i = 0; i < facts.cards.size(); ++i) facts.cards[i].index = i;
  }
  tell({.node = name});
}

}  // namespace gantry::simulate
