// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/evictor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gantry::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxWaitingPods = 1000;
constexpr std::size_t kMaxPodsPerRound = 20;  // checked in one round
constexpr unsigned kMaxBackoffDoublings = 4;
constexpr int kMaxEvictionTries = 16;  // sets of victims that are tried one after the other
constexpr seconds kSoon{1};
constexpr seconds kNothingHelps{5};
constexpr unsigned kMaxIdleRounds = 2;
constexpr std::chrono::minutes kNever{5};

milliseconds doubled(milliseconds time, unsigned times) {
  return time * (1U << std::min(times, kMaxBackoffDoublings));
}

milliseconds nothing_helps(unsigned& times) {
  const auto again = doubled(kNothingHelps, times);
  times = std::min(times + 1, kMaxIdleRounds);
  return again;
}

std::string describe_victims(const std::vector<Victim>& victims) {
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(victims.size(), kNamed); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", to_string(victims[i].pod));
  if (victims.size() > kNamed) names += fmt::format(" and {} more", victims.size() - kNamed);
  return names;
}

std::string cards_of(const podspec::Placement& placement) {
  std::set<std::uint32_t> indexes;
  for (const auto& container : placement)
    for (const auto& part : container.parts) indexes.insert(part.index);
  std::string text;
  for (const auto index : indexes) text += fmt::format("{}{}", text.empty() ? "" : ", ", index);
  return fmt::format("GPU{} {}", indexes.size() == 1 ? "" : "s", text);
}

std::string sentence(const PreemptionPlan& room, const podspec::Placement& placement) {
  const auto where = fmt::format("{} of node {}", cards_of(placement), room.node);
  if (room.victims.empty())
    return fmt::format("pods on {} are ending; their room is kept for this pod", where);
  return fmt::format(
      "{} of lower priority {} evicted from {} to make room for this pod; the room is kept for it",
      describe_victims(room.victims), room.victims.size() == 1 ? "is" : "are", where);
}

}  // namespace

Evictor::Evictor(ClusterCache& cache, SchedulerCounters& counters, EvictApi api_calls,
                 EvictorOptions options)
    : cache_(cache), counters_(counters), api_(std::move(api_calls)), options_(options) {}

void Evictor::refused(UnschedulablePod full, TimePoint now) {
  const std::lock_guard hold(mutex_);
  const auto found = waiting_.find(full.ask.pod.uid);
  if (found != waiting_.end()) {
    found->second.full = std::move(full);
    found->second.asked = now;
    return;
  }
  if (waiting_.size() >= kMaxWaitingPods) return;  // it is added when others have gone
  auto uid = full.ask.pod.uid;
  waiting_[std::move(uid)] = {
      .full = std::move(full), .asked = now, .since = now, .next = now + options_.grace};
}

std::string Evictor::progress(std::string_view uid) const {
  const std::lock_guard hold(mutex_);
  const auto found = waiting_.find(uid);
  return found == waiting_.end() ? std::string() : found->second.progress;
}

void Evictor::stop() {
  const std::lock_guard hold(mutex_);
  stopped_ = true;
}

bool Evictor::stopped() const {
  const std::lock_guard hold(mutex_);
  return stopped_;
}

// Highest priority first, then the longest wait.
std::vector<Evictor::DuePod> Evictor::due(TimePoint now) const {
  const std::lock_guard hold(mutex_);
  std::vector<DuePod> all;
  for (const auto& [uid, waiting] : waiting_) {
    if (waiting.next <= now)
      all.push_back({.uid = uid, .priority = waiting.full.ask.priority, .since = waiting.since});
  }
  std::sort(all.begin(), all.end(), [](const DuePod& a, const DuePod& b) {
    return std::pair(b.priority, a.since) < std::pair(a.priority, b.since);
  });
  if (all.size() > kMaxPodsPerRound) all.resize(kMaxPodsPerRound);
  return all;
}

void Evictor::reconcile(TimePoint now, std::int64_t unix_s) {
  cache_.expire_nominations(now);
  std::erase_if(spared_, [&](const auto& spared) { return spared.second.until <= now; });
  for (const auto& one : due(now)) {
    if (stopped()) return;
    WaitingPod waiting;
    {
      const std::lock_guard hold(mutex_);
      waiting = waiting_.at(one.uid);
    }
    auto tended = process(waiting, now, unix_s);
    const std::lock_guard hold(mutex_);
    if (!tended) {
      waiting_.erase(one.uid);
      continue;
    }
    waiting.next = now + tended->again;
    waiting.progress = std::move(tended->progress);
    auto& there = waiting_.at(one.uid);
    waiting.full = std::move(there.full);  // it may have been refused again
    waiting.asked = there.asked;
    there = std::move(waiting);
  }
}

// Uses only the cache, without asking the API server.
std::optional<Evictor::Outcome> Evictor::first_look(WaitingPod& waiting, TimePoint now,
                                                    bool& over) const {
  const auto& ask = waiting.full.ask;
  // By then the watch has shown it.
  over = !cache_.pending(ask.pod.uid) && now - waiting.since > seconds(10);
  if (over) return std::nullopt;
  if (cache_.nomination(ask.pod.uid) && waiting.times > 0) return Outcome{kSoon, waiting.progress};
  if (const auto node = cache_.nominated(ask.pod.uid); !node.empty()) {
    if (auto left = defer_to_kube_scheduler(waiting, node, now)) return left;
  }
  const std::vector<std::string_view> names(waiting.full.nodes.begin(), waiting.full.nodes.end());
  std::vector<placement::Fit> fits;
  cache_.fit(ask, names, fits);
  const bool fits_now = std::any_of(fits.begin(), fits.end(), [](const placement::Fit& fit) {
    return fit.refusal == placement::Refusal::None;
  });
  if (!fits_now) return std::nullopt;
  return Outcome{options_.grace,
                 "there is room for it now; waiting for kube-scheduler to ask again"};
}

// kube-scheduler is making room itself, or our own process did before it died. If that has no
// result in time, pods that are ending anyway are considered.
std::optional<Evictor::Outcome> Evictor::defer_to_kube_scheduler(WaitingPod& waiting,
                                                                 const std::string& node,
                                                                 TimePoint now) const {
  if (node.empty()) {
    waiting.nominated_since.reset();
    return std::nullopt;
  }
  if (!waiting.nominated_since) waiting.nominated_since = now;
  if (now - *waiting.nominated_since > options_.nominated) return std::nullopt;
  return Outcome{kSoon, fmt::format("the scheduler is making room for it on node {}", node)};
}

Evictor::NextStep Evictor::process(WaitingPod& waiting, TimePoint now, std::int64_t unix_s) {
  bool over = false;
  if (auto known = first_look(waiting, now, over); known || over) return known;
  if (!may_send()) return Outcome{kSoon, waiting.progress};  // the leader does it
  if (now - waiting.asked > options_.fresh)
    return Outcome{kNothingHelps, "kube-scheduler has not asked for room for it for a while"};
  const auto& ask = waiting.full.ask;
  const auto room = cache_.plan_preemption(ask, waiting.full.nodes, {}, unix_s);
  if (!room.ok()) return Outcome{nothing_helps(waiting.idle), room.error().text()};
  // A pod may have to be evicted: first read the current state of the waiting pod.
  const auto pod = api_.read(ask.pod.name_space, ask.pod.name);
  if (!pod.ok() && pod.error().code() == Errc::NotFound) return std::nullopt;
  if (!pod.ok()) return Outcome{kNothingHelps, pod.error().text()};
  const auto metadata = (*pod)["metadata"];
  const auto spec = (*pod)["spec"];
  if (metadata["uid"].string_or_empty() != ask.pod.uid || metadata["deletionTimestamp"] ||
      !spec["nodeName"].string_or_empty().empty())
    return std::nullopt;
  // Use the priority of the API server's object, not of the request: any client can send a request
  // with any priority.
  auto seen = podspec::parse_request(pod->root());
  if (!seen.ok() || !*seen) return std::nullopt;
  waiting.full.ask = **std::move(seen);
  if (spec["preemptionPolicy"].string_or_empty() == "Never")
    return Outcome{kNever, "no pod is evicted for it: its preemptionPolicy is Never"};
  if (auto left = defer_to_kube_scheduler(
          waiting, (*pod)["status"]["nominatedNodeName"].string_or_empty(), now))
    return left;
  return preempt_lower_priority(waiting, why_not(*room), now, unix_s);
}

// The reason when the first victim was asked; "": no pod was asked.
std::string Evictor::why_not(const PreemptionPlan& room) const {
  for (const auto& victim : room.victims) {
    const auto found = spared_.find(victim.pod.uid);
    if (found != spared_.end()) return found->second.why;
  }
  return {};
}

Evictor::NextStep Evictor::preempt_lower_priority(WaitingPod& waiting, std::string why,
                                                  TimePoint now, std::int64_t unix_s) {
  const auto& ask = waiting.full.ask;
  const auto spared = [this](std::string_view uid) { return spared_.contains(uid); };
  for (int i = 0; i < kMaxEvictionTries && !stopped(); ++i) {
    const auto room = cache_.plan_preemption(ask, waiting.full.nodes, spared, unix_s);
    if (!room.ok()) {
      if (why.empty()) why = room.error().text();
      return Outcome{nothing_helps(waiting.idle), std::move(why)};
    }
    if (!check_evictable(*room, now, why)) continue;  // try other victims
    const auto placement = cache_.add_nomination(ask, *room, now);
    if (!placement.ok()) return Outcome{kSoon, placement.error().text()};
    return evict_all(waiting, *room, *placement, now);
  }
  return Outcome{kNothingHelps, std::move(why)};
}

bool Evictor::check_evictable(const PreemptionPlan& room, TimePoint now, std::string& why) {
  for (const auto& victim : room.victims) {
    if (stopped()) return false;
    const auto answer = api_.evict({.pod = victim.pod, .mode = kube::Eviction::Mode::Ask});
    if (answer.evicted == kube::EvictionOutcome::Done ||
        answer.evicted == kube::EvictionOutcome::Gone)
      continue;
    why = fmt::format("{} would have to make room, but cannot be evicted now: {}",
                      to_string(victim.pod), answer.text);
    if (answer.evicted == kube::EvictionOutcome::Refused && api_.warn)
      api_.warn("pod cannot be evicted now", victim.pod, Error(Errc::Denied, answer.text));
    spared_[victim.pod.uid] = {.until = now + options_.spared, .why = why};
    return false;
  }
  return true;
}

Evictor::Outcome Evictor::evict_all(WaitingPod& waiting, const PreemptionPlan& room,
                                    const podspec::Placement& placement, TimePoint now) {
  const auto& ask = waiting.full.ask;
  std::string why;
  for (const auto& victim : room.victims) {
    if (evict(waiting, room, victim, now, why)) continue;
    cache_.end_nomination(ask.pod.uid);  // choose again, with the pods that are already ending
    return {kSoon, std::move(why)};
  }
  waiting.idle = 0;
  if (const auto told = api_.nominate(ask, room.node); !told.ok() && api_.warn)
    api_.warn("cannot nominate a node", ask.pod, told.error());
  report_to_pod(ask, room, placement);
  return {doubled(options_.again, waiting.times++), sentence(room, placement)};
}

bool Evictor::evict(const WaitingPod& waiting, const PreemptionPlan& room, const Victim& victim,
                    TimePoint now, std::string& why) {
  if (stopped() || !may_send()) {
    why = "this replica of the scheduler is no longer the leader";
    return false;
  }
  const auto answer = api_.evict({.pod = victim.pod});
  switch (answer.evicted) {
    case kube::EvictionOutcome::Done:
      counters_.evicted.fetch_add(1, std::memory_order_relaxed);
      report_to_victim(waiting.full.ask, room, victim);
      return true;
    case kube::EvictionOutcome::Gone:
    case kube::EvictionOutcome::Unknown: return true;  // the watch will show it
    case kube::EvictionOutcome::Protected:
    case kube::EvictionOutcome::Refused: break;
  }
  why = fmt::format("{} cannot be evicted now: {}", to_string(victim.pod), answer.text);
  spared_[victim.pod.uid] = {.until = now + options_.spared, .why = why};
  return false;
}

bool Evictor::may_send() const {
  const auto left = api_.lead();
  return left.ok() && *left > options_.request;
}

void Evictor::report_to_pod(const podspec::PodRequest& ask, const PreemptionPlan& room,
                            const podspec::Placement& placement) const {
  api_.tell({.object = ask.pod,
             .reason = "MakingRoom",
             .message = sentence(room, placement),
             .component = "gantry-scheduler"});
}

void Evictor::report_to_victim(const podspec::PodRequest& ask, const PreemptionPlan& room,
                               const Victim& victim) const {
  api_.tell({.object = victim.pod,
             .reason = "Preempted",
             .message = fmt::format("evicted to make room on a GPU of node {} for pod {}, whose "
                                    "priority {} is higher than {}",
                                    room.node, to_string(ask.pod), ask.priority, victim.priority),
             .component = "gantry-scheduler"});
}

}  // namespace gantry::scheduler
