// SPDX-License-Identifier: Apache-2.0
#include "place/state_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gantry::place {
Result<std::vector<std::string>> Cluster::victims(const ask::PodAsk& ask, std::string_view node,
                                                  std::span<const std::string> chosen) const {
  const auto nothing = [&] {
    return Error(Errc::NotFound,
                 fmt::format("no pod of less priority makes room on node {}", node));
  };
  const auto id = state_->find_node(node);
  if (!id) return nothing();
  std::vector<PodId> gone;
  std::vector<PodId> may;
  for (const auto pod_id : state_->more[*id].pods) {
    const auto& pod = state_->pods[pod_id];
    if (pod.uid == ask.uid || std::find(chosen.begin(), chosen.end(), pod.uid) != chosen.end()) {
      gone.push_back(pod_id);
    } else if (pod.priority < ask.priority) {
      may.push_back(pod_id);
    }
  }
  // Least important first; among equals the larger, which more often is enough alone.
  std::sort(may.begin(), may.end(), [&](PodId a, PodId b) {
    const auto& x = state_->pods[a];
    const auto& y = state_->pods[b];
    return std::tie(x.priority, y.quota_mib, x.uid) < std::tie(y.priority, x.quota_mib, y.uid);
  });
  Want want(ask);
  const auto enough = [&](const std::vector<PodId>& more) {
    auto all = gone;
    all.insert(all.end(), more.begin(), more.end());
    auto ground = state_->ground(*id);
    const auto without = state_->cards_without(*id, all);
    ground.cards = without;
    return find(ground, want, state_->options, Answer::Score).refusal == Refusal::None;
  };
  std::vector<PodId> more;
  if (!enough(more)) {
    if (!enough(may)) return nothing();
    more = may;
    for (auto pod = may.rbegin(); pod != may.rend(); ++pod) {
      auto fewer = more;
      std::erase(fewer, *pod);
      if (enough(fewer)) more = std::move(fewer);
    }
  }
  std::vector<std::string> uids(chosen.begin(), chosen.end());
  for (const auto pod : more) uids.push_back(state_->pods[pod].uid);
  return uids;
}

}  // namespace gantry::place
