// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_cache.hpp"

#include "cluster/scheduler/cluster_cache_internal.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::scheduler {

ClusterCache::ClusterCache(placement::Options options) : cluster_(options) {}
ClusterCache::~ClusterCache() = default;

std::uint64_t ClusterCache::generation() const {
  const std::lock_guard hold(mutex_);
  return generation_;
}

std::uint64_t ClusterCache::fit(const podspec::PodRequest& ask,
                                std::span<const std::string_view> nodes,
                                std::vector<placement::Fit>& fits) const {
  const std::lock_guard hold(mutex_);
  cluster_.fit_all(ask, nodes, fits);
  return generation_;
}

Result<std::vector<std::string>> ClusterCache::victims(const podspec::PodRequest& ask,
                                                       std::string_view node,
                                                       std::span<const std::string> chosen) const {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> gone(chosen.begin(), chosen.end());
  std::unordered_set<std::string> besides;  // pods that are being deleted go without an eviction
  if (const auto there = terminating_.find(std::string(node)); there != terminating_.end())
    besides = there->second;
  for (const auto& uid : chosen) besides.erase(uid);
  gone.insert(gone.end(), besides.begin(), besides.end());
  GANTRY_TRY(auto all, cluster_.victims(ask, node, gone, [this](std::string_view uid) {
    const auto known = pods_.find(std::string(uid));
    return known != pods_.end() && known->second.is_static;
  }));
  std::erase_if(all, [&](const std::string& uid) { return besides.contains(uid); });
  return all;
}

placement::NodeView ClusterCache::view(std::string_view node) const {
  const std::lock_guard hold(mutex_);
  return cluster_.view(node);
}

std::vector<std::string> ClusterCache::nodes() const {
  const std::lock_guard hold(mutex_);
  return cluster_.nodes();
}

std::optional<podspec::PodRequest> ClusterCache::pending(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = pods_.find(std::string(uid));
  if (found == pods_.end() || !found->second.ask) return std::nullopt;
  return *found->second.ask;
}

std::size_t ClusterCache::pods() const {
  const std::lock_guard hold(mutex_);
  std::size_t count = assumed_.size();
  for (const auto& [uid, known] : pods_) count += known.counted ? 1 : 0;
  return count;
}

// ---- assumed pods

std::optional<std::string> ClusterCache::node_of_unknown_binding(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = assumed_.find(std::string(uid));
  if (found == assumed_.end() || found->second.assumed.state != AssumedPod::State::Unknown)
    return std::nullopt;
  return found->second.assumed.node;
}

Result<BindDecision> ClusterCache::assumed(const podspec::PodRequest& ask, std::string_view node,
                                           std::int64_t unix_ns, TimePoint now) {
  const std::lock_guard hold(mutex_);
  if (const auto found = assumed_.find(ask.pod.uid); found != assumed_.end()) {
    auto& [assumed, decision] = found->second;
    if (assumed.node != node) {
      return Error(Errc::Busy,
                   fmt::format("a Binding of this pod to node {} was sent before, and its result "
                               "is not known yet; try again in a few seconds",
                               assumed.node));
    }
    if (assumed.state == AssumedPod::State::Sending)
      return Error(Errc::Busy, "a Binding of this pod to this node is in progress");
    assumed.state = AssumedPod::State::Sending;
    assumed.since = now;
    decision.again = true;  // identical, so that both Bindings have the same effect
    return decision;
  }
  GANTRY_TRY(auto placement, cluster_.reserve(ask, node));
  ++generation_;
  auto decision = decision_of(ask, node, std::move(placement), unix_ns);
  assumed_[ask.pod.uid] = {.assumed = {.pod = ask.pod,
                                       .node = std::string(node),
                                       .state = AssumedPod::State::Sending,
                                       .since = now},
                           .decision = decision};
  return decision;
}

BindDecision ClusterCache::decision_of(const podspec::PodRequest& ask, std::string_view node,
                                       podspec::Placement placement, std::int64_t unix_ns) const {
  if (placement.empty()) return {};  // the kubelet allocates whole GPUs
  const auto view = cluster_.view(node);
  podspec::AnnotationInput facts{
      .node = std::string(node), .unit_mib = view.facts.unit_mib, .unix_ns = unix_ns};
  for (const auto& card : view.facts.cards) {
    facts.card_mib[card.uuid] = card.mib;
    facts.model[card.uuid] = card.model;
  }
  auto annotations = podspec::annotations(ask, placement, facts);
  return {.placement = std::move(placement), .annotations = std::move(annotations)};
}

void ClusterCache::mark(std::string_view uid, AssumedPod::State state, TimePoint now) {
  const std::lock_guard hold(mutex_);
  const auto found = assumed_.find(std::string(uid));
  if (found == assumed_.end()) return;  // the watch was faster
  found->second.assumed.state = state;
  found->second.assumed.since = now;
}

void ClusterCache::release(std::string_view uid) {
  const std::lock_guard hold(mutex_);
  release_assumed(std::string(uid));
}

// The same Binding may have been sent again in the meantime.
void ClusterCache::release(const AssumedPod& seen) {
  const std::lock_guard hold(mutex_);
  const auto found = assumed_.find(seen.pod.uid);
  if (found == assumed_.end()) return;
  const auto& now = found->second.assumed;
  if (now.state == seen.state && now.since == seen.since) release_assumed(seen.pod.uid);
}

void ClusterCache::release_assumed(const std::string& uid) {
  if (assumed_.erase(uid) == 0) return;
  cluster_.release(uid);
  ++generation_;
  const auto nomination = nominations_.find(uid);
  if (nomination == nominations_.end()) return;  // otherwise the room is still kept for it
  if (!cluster_
           .add_nomination(nomination->second.ask, nomination->second.nomination.node,
                           nomination->second.nomination.awaited)
           .ok())
    nominations_.erase(nomination);
}

std::vector<AssumedPod> ClusterCache::assumed_pods() const {
  const std::lock_guard hold(mutex_);
  std::vector<AssumedPod> all;
  all.reserve(assumed_.size());
  for (const auto& [uid, held] : assumed_) all.push_back(held.assumed);
  return all;
}

}  // namespace gantry::scheduler
