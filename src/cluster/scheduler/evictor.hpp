// SPDX-License-Identifier: Apache-2.0
// Makes room on a card for a pod that matters more. kube-scheduler counts by node: where a node has
// enough left in sum and no card has, its own preemption finds that the pod fits without anybody's
// end, and gives up. Then the leader asks the fewest and least important pods to go, by the
// Eviction API, and keeps what they leave for the pod. A process that dies in between has lost
// nothing: whoever has been asked to go is counted as going by the next one.
#pragma once

#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/extender.hpp"
#include "net/kube/event.hpp"
#include "net/kube/eviction.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::scheduler {

// What an Evictor needs of the world.
struct EvictApi {
  std::function<kube::EvictionResult(const kube::Eviction&)> evict;
  std::function<Result<json::Document>(const std::string& name_space, const std::string& pod)> read;
  // For how long what is sent now comes from the only one who may; as BindApi::lead.
  std::function<Result<std::chrono::milliseconds>()> lead;
  // Writes into the pod for which node it waits: kube-scheduler counts it there, every replica
  // keeps a card for it, and so does whoever leads after us.
  std::function<Status(const podspec::PodRequest& ask, const std::string& node)> nominate;
  std::function<void(kube::Event)> tell;
  std::function<void(const std::string& trouble)> warn;
};

struct EvictorOptions {
  std::chrono::milliseconds request{4000};  // how long an eviction takes at most
  // So long kube-scheduler may find room by itself, which it says in the pod's nominatedNodeName.
  std::chrono::milliseconds grace{3000};
  std::chrono::milliseconds nominated = std::chrono::seconds(15);  // so long that is believed
  std::chrono::milliseconds spared = std::chrono::seconds(30);     // after a budget said no
  std::chrono::milliseconds again = std::chrono::minutes(1);       // doubled with each time
  // So long the nodes of a question are believed: kube-scheduler asks again every five minutes,
  // unless something else than GPUs keeps the pod from all of them by now.
  std::chrono::milliseconds fresh = std::chrono::minutes(7);
};

class Evictor {
 public:
  Evictor(ClusterCache& cache, SchedulerCounters& counters, EvictApi api_calls,
          EvictorOptions options = {});

  void refused(UnschedulablePod full, TimePoint now);  // by any thread

  // Does what is due; every second, by one thread. `unix_s`: the time of day.
  void reconcile(TimePoint now, std::int64_t unix_s);
  void stop();  // nothing more is sent; what is under way is

  // What is done for a pod that waits, or why nothing is, in one sentence; "": it is not known.
  std::string progress(std::string_view uid) const;

 private:
  struct WaitingPod {
    UnschedulablePod full;
    TimePoint asked;  // last
    TimePoint since;
    TimePoint next;
    std::optional<TimePoint> nominated_since;
    unsigned times = 0;  // that somebody was evicted for it
    unsigned idle = 0;   // that nothing helped
    std::string progress;
  };
  struct DuePod {
    std::string uid;
    std::int32_t priority = 0;
    TimePoint since;
  };
  // When to look again, and what to say until then; nullopt: it waits no more.
  struct Outcome {
    std::chrono::milliseconds again;
    std::string progress;
  };
  using NextStep = std::optional<Outcome>;

  std::vector<DuePod> due(TimePoint now) const;
  NextStep process(WaitingPod& waiting, TimePoint now, std::int64_t unix_s);
  NextStep preempt_lower_priority(WaitingPod& waiting, std::string why, TimePoint now,
                                  std::int64_t unix_s);
  std::string why_not(const PreemptionPlan& room) const;
  std::optional<Outcome> defer_to_kube_scheduler(WaitingPod& waiting, const std::string& node,
                                                 TimePoint now) const;
  std::optional<Outcome> first_look(WaitingPod& waiting, TimePoint now, bool& over) const;
  // False: somebody may not go now, and is spared for a while.
  bool check_evictable(const PreemptionPlan& room, TimePoint now, std::string& why);
  Outcome evict_all(WaitingPod& waiting, const PreemptionPlan& room,
                    const podspec::Placement& placement, TimePoint now);
  bool evict(const WaitingPod& waiting, const PreemptionPlan& room, const Victim& victim,
             TimePoint now, std::string& why);
  void report_to_pod(const podspec::PodRequest& ask, const PreemptionPlan& room,
                     const podspec::Placement& placement) const;
  void report_to_victim(const podspec::PodRequest& ask, const PreemptionPlan& room,
                        const Victim& victim) const;
  bool may_send() const;
  bool stopped() const;

  ClusterCache& cache_;
  SchedulerCounters& counters_;
  EvictApi api_;
  EvictorOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, WaitingPod, std::less<>> waiting_;  // by uid
  struct ProtectedPod {
    TimePoint until;
    std::string why;
  };
  std::map<std::string, ProtectedPod, std::less<>> spared_;  // by uid; of the one thread
  bool stopped_ = false;
};

}  // namespace gantry::scheduler
