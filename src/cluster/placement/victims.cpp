// SPDX-License-Identifier: Apache-2.0
// Chooses the pods to evict. The fewest pods win; among sets of the same size, the set whose most
// important pod is the least important. All small sets are tried. Beyond a limit, pods are removed
// from the least important on until the pod fits, and then kept again from the most important on,
// for the whole node and for each card.
#include "cluster/placement/state_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gantry::placement {
namespace {

constexpr int kMaxExaminedSets = 2000;  // tried one by one

class VictimSearch {
 public:
  VictimSearch(const Cluster::State& state, NodeId node, const podspec::PodRequest& ask)
      : state_(state), node_(node), demand_(ask) {}

  // Least important first: the order in which sets are tried.
  void sort(std::vector<PodId>& pods) const {
    std::sort(pods.begin(), pods.end(), [&](PodId a, PodId b) {
      const auto& x = state_.pods[a];
      const auto& y = state_.pods[b];
      return std::tie(x.priority, x.quota_mib, x.uid) < std::tie(y.priority, y.quota_mib, y.uid);
    });
  }

  bool enough(const std::vector<PodId>& gone) {
    auto all = fixed;
    all.insert(all.end(), gone.begin(), gone.end());
    const auto left = state_.cards_without(node_, all);
    const auto node_state = state_.node_state(node_).with(left);
    return find(node_state, demand_, state_.options, FindDetail::Score).refusal == Refusal::None;
  }

  // Evicting other pods does not raise the quota of a namespace.
  bool within_quota() {
    const auto space = state_.namespace_without(demand_.ask().pod.name_space,
                                                state_.find_pod(demand_.ask().pod.uid));
    if (!space) return true;
    const auto all = state_.more[node_].pods;
    const auto empty = state_.cards_without(node_, all);
    const auto node_state = state_.node_state(node_).with(empty);
    const auto found = find(node_state, demand_, state_.options, FindDetail::CardMask);
    return found.refusal != Refusal::None ||
           within(*space, charges(node_state, demand_, found.choice));
  }

  // `may` is sorted, and evicting all of it is enough.
  std::vector<PodId> fewest(const std::vector<PodId>& may) {
    for (std::size_t size = 1; size <= may.size() && looked_at_ < kMaxExaminedSets; ++size) {
      // In this order, the first set that helps is the one whose most important pod is the least
      // important.
      for (std::size_t last = size - 1; last < may.size() && looked_at_ < kMaxExaminedSets;
           ++last) {
        std::vector<PodId> chosen{may[last]};
        if (add(may, last, size - 1, chosen)) return chosen;
      }
    }
    return looked_at_ < kMaxExaminedSets ? may : good(may);
  }

  std::vector<PodId> fixed;  // gone in any case

 private:
  // Adds `missing` pods from before `end`; false: no such set is enough.
  bool add(const std::vector<PodId>& may, std::size_t end, std::size_t missing,
           std::vector<PodId>& chosen) {
    if (missing == 0) return ++looked_at_ <= kMaxExaminedSets && enough(chosen);
    for (std::size_t next = missing - 1; next < end && looked_at_ < kMaxExaminedSets; ++next) {
      chosen.push_back(may[next]);
      if (add(may, next, missing - 1, chosen)) return true;
      chosen.pop_back();
    }
    return false;
  }

  std::vector<PodId> good(const std::vector<PodId>& may) {
    auto best = spared(may);
    for (std::uint16_t card = 0; card < state_.nodes[node_].own; ++card) {
      std::vector<PodId> on_it;
      for (const auto pod : may)
        if (is_on(pod, card)) on_it.push_back(pod);
      if (on_it.empty() || !enough(on_it)) continue;
      auto fewer = spared(on_it);
      if (fewer.size() < best.size()) best = std::move(fewer);
    }
    return best;
  }

  bool is_on(PodId pod, std::uint16_t card) const {
    const auto& charges = state_.pods[pod].charges;
    return std::any_of(charges.begin(), charges.end(),
                       [&](const CardCharge& charge) { return charge.card == card; });
  }

  // Keeps every pod that need not go, the most important first.
  std::vector<PodId> spared(std::vector<PodId> gone) {
    for (std::size_t i = gone.size(); i-- > 0;) {
      auto fewer = gone;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (enough(fewer)) gone = std::move(fewer);
    }
    return gone;
  }

  const Cluster::State& state_;
  NodeId node_;
  PodDemand demand_;
  int looked_at_ = 0;
};

}  // namespace

Result<std::vector<std::string>> Cluster::victims(const podspec::PodRequest& ask,
                                                  std::string_view node,
                                                  std::span<const std::string> chosen,
                                                  const IsProtected& spared) const {
  const auto nothing = [&] {
    return Error(
        Errc::NotFound,
        fmt::format("evicting pods of lower priority does not make enough room on node {}", node));
  };
  const auto id = state_->find_node(node);
  if (!id) return nothing();
  VictimSearch search(*state_, *id, ask);
  search.fixed = state_->of_node(*id, state_->pods_to_ignore(ask));
  std::vector<PodId> may;
  for (const auto pod_id : state_->more[*id].pods) {
    const auto& pod = state_->pods[pod_id];
    if (std::find(search.fixed.begin(), search.fixed.end(), pod_id) != search.fixed.end()) continue;
    if (std::find(chosen.begin(), chosen.end(), pod.uid) != chosen.end()) {
      search.fixed.push_back(pod_id);
    } else if (pod.priority < ask.priority && !pod.reserved && !pod.charges.empty() &&
               !(spared && spared(pod.uid))) {
      may.push_back(pod_id);
    }
  }
  if (!search.within_quota()) return nothing();
  search.sort(may);
  std::vector<PodId> gone;
  if (!search.enough(gone)) {
    if (!search.enough(may)) return nothing();
    gone = search.fewest(may);
    search.sort(gone);
  }
  std::vector<std::string> uids(chosen.begin(), chosen.end());
  for (const auto pod : gone) uids.push_back(state_->pods[pod].uid);
  return uids;
}

}  // namespace gantry::placement
