// SPDX-License-Identifier: Apache-2.0
// The API server's side: Bindings and their events.
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::simulate {
namespace {

const podspec::CardInfo* card_of(const podspec::NodeInfo& facts, const model::GpuUuid& uuid) {
  const auto found = std::find_if(facts.cards.begin(), facts.cards.end(),
                                  [&](const podspec::CardInfo& card) { return card.uuid == uuid; });
  return found == facts.cards.end() ? nullptr : &*found;
}

bool alone_on(const podspec::Placement& placement, const model::GpuUuid& uuid) {
  for (const auto& container : placement)
    for (const auto& part : container.parts)
      if (part.uuid == uuid && part.cores >= 100) return true;
  return false;
}

bool beyond(const placement::Quota& quota, std::uint64_t mib, std::uint64_t cores) {
  return (quota.mib > 0 && mib > quota.mib) || (quota.cores > 0 && cores > quota.cores);
}

}  // namespace

// Books the amounts of a placement on each card of the node, by UUID.
Status ClusterSimulation::take(Pod& pod, Index node, podspec::Placement placement) {
  GANTRY_ASSERT(!pod.bound && !pod.counted);
  pod.node = node;
  pod.placement = std::move(placement);
  pod.taken.clear();
  const auto& cards = nodes_[node].cards;
  for (const auto& charge : podspec::charges(pod.ask, pod.placement)) {
    const auto found = std::find_if(cards.begin(), cards.end(),
                                    [&](const Card& card) { return card.uuid == charge.uuid; });
    if (found == cards.end())
      return Error(Errc::Internal,
                   fmt::format("pod {} on {}, which node {} does not have", pod.ask.pod.uid,
                               charge.uuid.text, nodes_[node].facts.name));
    pod.taken.push_back(
        {.card = static_cast<Index>(found - cards.begin()),
         .sums = {.mib = charge.mib, .cores = charge.cores, .slots = charge.slots}});
  }
  return {};
}

Status ClusterSimulation::bind(Pod& pod) {
  ++counts_.placed;
  for (const auto& taken : pod.taken) GANTRY_CHECK(check_card(pod, taken));
  set_bound(pod, true);
  const auto& team = teams_[pod.team];
  if (beyond(team.observed, team.totals.actual.mib, team.totals.actual.cores))
    return Error(Errc::Internal,
                 fmt::format("pod {}: namespace {} has {} of {} MiB, {} of {} % of time",
                             pod.ask.pod.uid, team.name_space, team.totals.actual.mib,
                             team.observed.mib, team.totals.actual.cores, team.observed.cores));
  enqueue_event({.what = Event::EventKind::Pod, .number = pod.number});
  return {};
}

// Checks against the scheduler's knowledge of the card and the pods that are already on it.
Status ClusterSimulation::check_card(const Pod& pod, const CardAllocation& taken) const {
  const auto& node = nodes_[pod.node];
  const auto& [uuid, totals] = node.cards[taken.card];
  const auto wrong = [&](std::string_view what) {
    return Error(Errc::Internal, fmt::format("pod {} on {} of {}: {}", pod.ask.pod.uid, uuid.text,
                                             node.facts.name, what));
  };
  const auto* card = card_of(node.observed, uuid);
  if (card == nullptr || !card->healthy) return wrong("no such healthy card");
  if (alone_on(pod.placement, uuid) && totals.actual.slots > 0)
    return wrong("the pod needs the card for itself, but other pods are on it");
  if (totals.actual.cores >= 100) return wrong("another pod has all of its time");
  auto sums = totals.actual;
  sums.add(taken.sums);
  if (sums.mib > card->mib || sums.cores > 100 || sums.slots > card->slots)
    return wrong(fmt::format("oversubscribed: {} of {} MiB, {} % of its time, {} of {} slots",
                             sums.mib, card->mib, sums.cores, sums.slots, card->slots));
  return {};
}

void ClusterSimulation::deliver(std::size_t most) {
  for (; most > 0 && !events_.empty(); --most) {
    const auto event = events_.front();
    events_.pop_front();
    apply_event(event);
    if (chance(options_.twice)) apply_event(event);
  }
}

}  // namespace gantry::simulate
