// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/book_internal.hpp"
#include "net/kube/event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace gantry::scheduler {
namespace {

constexpr std::chrono::minutes kKeepFree{1};  // room that nobody takes is given to all
constexpr std::chrono::minutes kKeepAtMost{10};
constexpr std::int64_t kOverdueSeconds = 60;  // it does not go: its node may be dead
constexpr std::size_t kEnoughNodes = 100;     // to choose the best of

std::int32_t most_important(const Room& room) {
  auto most = std::numeric_limits<std::int32_t>::min();
  for (const auto& victim : room.victims) most = std::max(most, victim.priority);
  return most;
}

bool better(const Room& a, const Room& b) {
  return std::pair(a.victims.size(), most_important(a)) <
         std::pair(b.victims.size(), most_important(b));
}

}  // namespace

void Book::note_end(const json::Value& pod, const std::string& uid, Known& known) {
  const auto by = pod["metadata"]["deletionTimestamp"].string();
  if (!by) return;
  known.gone_by = *by;
  going_[known.node].insert(uid);
}

std::vector<std::string> Book::going(const std::string& node, std::int64_t unix_s) const {
  std::vector<std::string> uids;
  const auto there = going_.find(node);
  if (there == going_.end()) return uids;
  const auto overdue = kube::utc(unix_s - kOverdueSeconds);
  for (const auto& uid : there->second) {
    const auto known = known_.find(uid);
    if (known != known_.end() && known->second.gone_by > overdue) uids.push_back(uid);
  }
  std::sort(uids.begin(), uids.end());
  return uids;
}

bool Book::matters_less(const std::vector<std::string>& uids, std::int32_t priority) const {
  return std::any_of(uids.begin(), uids.end(), [&](const std::string& uid) {
    const auto known = known_.find(uid);
    return known != known_.end() && known->second.priority < priority;
  });
}

Victim Book::victim(const std::string& uid) const {
  const auto& known = known_.at(uid);
  return {
      .uid = uid, .name_space = known.name_space, .name = known.name, .priority = known.priority};
}

Result<Room> Book::room_for(const podspec::PodAsk& ask, std::span<const std::string> nodes,
                            const placement::Spared& spared, std::int64_t unix_s) const {
  std::optional<Room> best;
  std::size_t helped = 0;
  for (const auto& node : nodes) {
    const std::lock_guard hold(mutex_);  // others ask between two nodes
    auto leaving = going(node, unix_s);
    const auto all = cluster_.victims(ask, node, leaving, [&](std::string_view uid) {
      const auto known = known_.find(std::string(uid));
      return known == known_.end() || !known->second.evictable || !known->second.gone_by.empty() ||
             (spared && spared(uid));
    });
    if (!all.ok()) continue;
    Room room{.node = node};
    for (std::size_t i = leaving.size(); i < all->size(); ++i)
      room.victims.push_back(victim((*all)[i]));
    // It fits, or will when others have gone who did not go for its sake: no need to do anything.
    if (room.victims.empty() && !matters_less(leaving, ask.priority)) continue;
    room.going = std::move(leaving);
    if (!best || better(room, *best)) best = std::move(room);
    if (best->victims.empty() || ++helped == kEnoughNodes) break;
  }
  if (best) return *std::move(best);
  return Error(Errc::NotFound, "no pods of lower priority can be moved out of its way");
}

Result<podspec::Placement> Book::keep(const podspec::PodAsk& ask, const Room& room, Moment now) {
  const std::lock_guard hold(mutex_);
  if (held_.contains(ask.uid)) return Error(Errc::Busy, "its Binding is under way");
  Kept kept{.node = room.node, .awaited = room.going, .since = now};
  for (const auto& victim : room.victims) kept.awaited.push_back(victim.uid);
  GANTRY_TRY(auto placement, cluster_.keep(ask, room.node, kept.awaited));
  ++generation_;
  keeps_[ask.uid] = {.kept = std::move(kept), .ask = ask};
  return placement;
}

void Book::drop_keep(const std::string& uid) {
  if (keeps_.erase(uid) == 0 || held_.contains(uid)) return;
  cluster_.release(uid);
  ++generation_;
}

void Book::end_keep(std::string_view uid) {
  const std::lock_guard hold(mutex_);
  drop_keep(std::string(uid));
}

bool Book::awaits(const Kept& kept) const {
  return std::any_of(kept.awaited.begin(), kept.awaited.end(),
                     [&](const std::string& uid) { return known_.contains(uid); });
}

void Book::end_old_keeps(Moment now) {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> old;
  for (auto& [uid, keep] : keeps_) {
    auto& kept = keep.kept;
    if (!kept.free_since && !awaits(kept)) kept.free_since = now;
    const bool taken = !cluster_.keeps(uid) && !held_.contains(uid);  // by one that matters more
    if (taken || now - kept.since > kKeepAtMost ||
        (kept.free_since && now - *kept.free_since > kKeepFree))
      old.push_back(uid);
  }
  for (const auto& uid : old) {
    if (const auto known = known_.find(uid); known != known_.end())
      nominate(uid, known->second, "", now);
    drop_keep(uid);
  }
}

std::optional<Kept> Book::kept(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = keeps_.find(std::string(uid));
  if (found == keeps_.end() || !cluster_.keeps(uid)) return std::nullopt;
  return found->second.kept;
}

std::string Book::nominated(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = known_.find(std::string(uid));
  return found == known_.end() ? std::string() : found->second.nominated;
}

// ---- kube-scheduler's own: it counts by node, so that which card is for the pod is up to us

void Book::nominate(const std::string& uid, Known& known, std::string node, Moment now) {
  if (known.nominated == node) return;
  if (const auto there = nominated_.find(known.nominated); there != nominated_.end()) {
    there->second.erase(uid);
    if (there->second.empty()) nominated_.erase(there);
  }
  if (const auto kept = keeps_.find(uid);
      kept != keeps_.end() && kept->second.kept.cause == Kept::Cause::Nominated)
    drop_keep(uid);
  known.nominated = std::move(node);
  if (known.nominated.empty()) return;
  nominated_[known.nominated].insert(uid);
  keep_nominated(known.nominated, now);
}

// Called whenever somebody there begins to go or has gone: before anybody else sees the room.
void Book::keep_nominated(const std::string& node, Moment now) {
  const auto there = nominated_.find(node);
  if (there == nominated_.end()) return;
  for (const auto& uid : there->second) {
    const auto known = known_.find(uid);
    if (known == known_.end() || !known->second.ask || keeps_.contains(uid) || held_.contains(uid))
      continue;
    Kept kept{.node = node, .cause = Kept::Cause::Nominated, .since = now};
    if (const auto leaving = going_.find(node); leaving != going_.end())
      kept.awaited.assign(leaving->second.begin(), leaving->second.end());
    if (!cluster_.keep(*known->second.ask, node, kept.awaited).ok()) continue;  // not all go yet
    ++generation_;
    keeps_[uid] = {.kept = std::move(kept), .ask = *known->second.ask};
  }
}

}  // namespace gantry::scheduler
