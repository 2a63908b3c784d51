// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_cache_internal.hpp"
#include "net/kube/event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace gantry::scheduler {
namespace {

// After this time, unused room is available to all pods.
constexpr std::chrono::minutes kNominationAfterRoom{1};
constexpr std::chrono::minutes kNominationLimit{10};
// A pod that should be gone for this long does not go: its node may be dead.
constexpr std::int64_t kOverdueSeconds = 60;
constexpr std::size_t kEnoughNodes = 100;  // enough to choose the best of

std::int32_t most_important(const PreemptionPlan& room) {
  auto most = std::numeric_limits<std::int32_t>::min();
  for (const auto& victim : room.victims) most = std::max(most, victim.priority);
  return most;
}

bool better(const PreemptionPlan& a, const PreemptionPlan& b) {
  return std::pair(a.victims.size(), most_important(a)) <
         std::pair(b.victims.size(), most_important(b));
}

}  // namespace

void ClusterCache::note_deletion(const json::Value& pod, const std::string& uid, PodRecord& known) {
  const auto by = pod["metadata"]["deletionTimestamp"].string();
  if (!by) return;
  known.deletion_time = *by;
  terminating_[known.node].insert(uid);
}

std::vector<std::string> ClusterCache::terminating(const std::string& node,
                                                   std::int64_t unix_s) const {
  std::vector<std::string> uids;
  const auto there = terminating_.find(node);
  if (there == terminating_.end()) return uids;
  const auto overdue = kube::format_utc(unix_s - kOverdueSeconds);
  for (const auto& uid : there->second) {
    const auto known = pods_.find(uid);
    if (known != pods_.end() && known->second.deletion_time > overdue) uids.push_back(uid);
  }
  std::sort(uids.begin(), uids.end());
  return uids;
}

bool ClusterCache::any_lower_priority(const std::vector<std::string>& uids,
                                      std::int32_t priority) const {
  return std::any_of(uids.begin(), uids.end(), [&](const std::string& uid) {
    const auto known = pods_.find(uid);
    return known != pods_.end() && known->second.priority < priority;
  });
}

Victim ClusterCache::victim(const std::string& uid) const {
  const auto& known = pods_.at(uid);
  return {.pod = {.uid = uid, .name_space = known.name_space, .name = known.name},
          .priority = known.priority};
}

Result<PreemptionPlan> ClusterCache::plan_preemption(const podspec::PodRequest& ask,
                                                     std::span<const std::string> nodes,
                                                     const placement::IsProtected& spared,
                                                     std::int64_t unix_s) const {
  std::optional<PreemptionPlan> best;
  std::size_t helped = 0;
  for (const auto& node : nodes) {
    const std::lock_guard hold(mutex_);  // other requests can run between two nodes
    auto leaving = terminating(node, unix_s);
    const auto all = cluster_.victims(ask, node, leaving, [&](std::string_view uid) {
      const auto known = pods_.find(std::string(uid));
      return known == pods_.end() || !known->second.evictable ||
             !known->second.deletion_time.empty() || (spared && spared(uid));
    });
    if (!all.ok()) continue;
    PreemptionPlan room{.node = node};
    for (std::size_t i = leaving.size(); i < all->size(); ++i)
      room.victims.push_back(victim((*all)[i]));
    // It fits, or it will fit when pods have ended that were not evicted for it: nothing needs to
    // be done.
    if (room.victims.empty() && !any_lower_priority(leaving, ask.priority)) continue;
    room.terminating = std::move(leaving);
    if (!best || better(room, *best)) best = std::move(room);
    if (best->victims.empty() || ++helped == kEnoughNodes) break;
  }
  if (best) return *std::move(best);
  return Error(Errc::NotFound, "evicting pods of lower priority does not make room for it");
}

Result<podspec::Placement> ClusterCache::add_nomination(const podspec::PodRequest& ask,
                                                        const PreemptionPlan& room, TimePoint now) {
  const std::lock_guard hold(mutex_);
  if (assumed_.contains(ask.pod.uid)) return Error(Errc::Busy, "its Binding is in progress");
  Nomination nomination{.node = room.node, .awaited = room.terminating, .since = now};
  for (const auto& victim : room.victims) nomination.awaited.push_back(victim.pod.uid);
  GANTRY_TRY(auto placement, cluster_.add_nomination(ask, room.node, nomination.awaited));
  ++generation_;
  nominations_[ask.pod.uid] = {.nomination = std::move(nomination), .ask = ask};
  return placement;
}

void ClusterCache::drop_nomination(const std::string& uid) {
  if (nominations_.erase(uid) == 0 || assumed_.contains(uid)) return;
  cluster_.release(uid);
  ++generation_;
}

void ClusterCache::end_nomination(std::string_view uid) {
  const std::lock_guard hold(mutex_);
  drop_nomination(std::string(uid));
}

bool ClusterCache::is_waiting(const Nomination& nomination) const {
  return std::any_of(nomination.awaited.begin(), nomination.awaited.end(),
                     [&](const std::string& uid) { return pods_.contains(uid); });
}

void ClusterCache::expire_nominations(TimePoint now) {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> old;
  for (auto& [uid, add_nomination] : nominations_) {
    auto& nomination = add_nomination.nomination;
    if (!nomination.free_since && !is_waiting(nomination)) nomination.free_since = now;
    const bool taken =
        !cluster_.is_nominated(uid) && !assumed_.contains(uid);  // by a pod of higher priority
    if (taken || now - nomination.since > kNominationLimit ||
        (nomination.free_since && now - *nomination.free_since > kNominationAfterRoom))
      old.push_back(uid);
  }
  for (const auto& uid : old) {
    if (const auto known = pods_.find(uid); known != pods_.end())
      nominate(uid, known->second, "", now);
    drop_nomination(uid);
  }
}

std::optional<Nomination> ClusterCache::nomination(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = nominations_.find(std::string(uid));
  if (found == nominations_.end() || !cluster_.is_nominated(uid)) return std::nullopt;
  return found->second.nomination;
}

std::string ClusterCache::nominated(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = pods_.find(std::string(uid));
  return found == pods_.end() ? std::string() : found->second.nominated;
}

// ---- kube-scheduler's nominations: it counts by node, so we choose the card for the pod

void ClusterCache::nominate(const std::string& uid, PodRecord& known, std::string node,
                            TimePoint now) {
  if (known.nominated == node) return;
  if (const auto there = nominated_.find(known.nominated); there != nominated_.end()) {
    there->second.erase(uid);
    if (there->second.empty()) nominated_.erase(there);
  }
  if (const auto nomination = nominations_.find(uid);
      nomination != nominations_.end() &&
      nomination->second.nomination.cause == Nomination::Cause::Nominated)
    drop_nomination(uid);
  known.nominated = std::move(node);
  if (known.nominated.empty()) return;
  nominated_[known.nominated].insert(uid);
  renew_nominations(known.nominated, now);
}

// Called whenever a pod there begins to end or has ended, before another pod can see the room.
void ClusterCache::renew_nominations(const std::string& node, TimePoint now) {
  const auto there = nominated_.find(node);
  if (there == nominated_.end()) return;
  for (const auto& uid : there->second) {
    const auto known = pods_.find(uid);
    if (known == pods_.end() || !known->second.ask || nominations_.contains(uid) ||
        assumed_.contains(uid))
      continue;
    Nomination nomination{.node = node, .cause = Nomination::Cause::Nominated, .since = now};
    if (const auto leaving = terminating_.find(node); leaving != terminating_.end())
      nomination.awaited.assign(leaving->second.begin(), leaving->second.end());
    if (!cluster_.add_nomination(*known->second.ask, node, nomination.awaited).ok())
      continue;  // not all of them are ending yet
    ++generation_;
    nominations_[uid] = {.nomination = std::move(nomination), .ask = *known->second.ask};
  }
}

}  // namespace gantry::scheduler
