// SPDX-License-Identifier: Apache-2.0
// The API server's side, with books that have nothing in common with the scheduler's.
#include "simulate/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {
namespace {

const ask::CardFacts* card_of(const ask::NodeFacts& facts, const std::string& uuid) {
  const auto found = std::find_if(facts.cards.begin(), facts.cards.end(),
                                  [&](const ask::CardFacts& card) { return card.uuid == uuid; });
  return found == facts.cards.end() ? nullptr : &*found;
}

bool alone_on(const ask::Placement& placement, const std::string& uuid) {
  for (const auto& container : placement)
    for (const auto& part : container.parts)
      if (part.uuid == uuid && part.cores >= 100) return true;
  return false;
}

}  // namespace

Status World::bind(Pod& pod, const std::string& node, const ask::Placement& placement) {
  pod.node = node;
  pod.placement = placement;
  ++counts_.placed;
  const auto& facts = heard_.at(node);
  for (const auto& charge : ask::charges(pod.ask, placement)) {
    const auto wrong = [&](std::string_view what) {
      return Error(Errc::Internal,
                   fmt::format("pod {} on {} of {}: {}", pod.ask.uid, charge.uuid, node, what));
    };
    const auto* card = card_of(facts, charge.uuid);
    if (card == nullptr || !card->healthy) return wrong("no such healthy card");
    auto& sums = sums_[charge.uuid];
    if (alone_on(placement, charge.uuid) && sums.slots > 0)
      return wrong("wanted it alone, and it is not");
    if (sums.cores >= 100) return wrong("somebody has all of its time");
    sums.mib += charge.mib;
    sums.cores += charge.cores;
    sums.slots += charge.slots;
    if (sums.mib > card->mib || sums.cores > 100 || sums.slots > card->slots)
      return wrong(fmt::format("oversubscribed: {} of {} MiB, {} % of its time, {} of {} slots",
                               sums.mib, card->mib, sums.cores, sums.slots, card->slots));
  }
  tell({.uid = pod.ask.uid});
  return {};
}

void World::unbind(const Pod& pod) {
  for (const auto& charge : ask::charges(pod.ask, pod.placement)) {
    auto& sums = sums_[charge.uuid];
    sums.mib -= charge.mib;
    sums.cores -= charge.cores;
    sums.slots -= charge.slots;
  }
}

void World::tell(Event event) {
  events_.push_back(std::move(event));
}

Status World::deliver(std::size_t most) {
  for (; most > 0 && !events_.empty(); --most) {
    const auto event = std::move(events_.front());
    events_.pop_front();
    hear(event);
    if (chance(options_.twice)) hear(event);
  }
  return {};
}

// Of every card that the scheduler knows: what it believes against what is so.
Status World::compare() const {
  for (const auto& name : cluster_.nodes()) {
    for (const auto& card : cluster_.view(name).cards) {
      const auto found = sums_.find(card.facts.uuid);
      const auto so = found == sums_.end() ? Sums{} : found->second;
      if (card.used_mib == so.mib && card.used_cores == so.cores && card.used_slots == so.slots)
        continue;
      return Error(Errc::Internal,
                   fmt::format("{}: the scheduler believes {} MiB, {} %, {} slots; so are {} MiB, "
                               "{} %, {} slots",
                               card.facts.uuid, card.used_mib, card.used_cores, card.used_slots,
                               so.mib, so.cores, so.slots));
    }
  }
  return {};
}

}  // namespace gantry::simulate
