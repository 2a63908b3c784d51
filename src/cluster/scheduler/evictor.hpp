// SPDX-License-Identifier: Apache-2.0
// Makes room on a card for a pod of higher priority. kube-scheduler counts by node: if a node has
// enough in total but no single card has, kube-scheduler's own preemption finds that the pod fits
// without any eviction, and gives up. Then the leader evicts the fewest and least important pods
// with the Eviction API, and keeps their room for the pod. Nothing is lost if the process dies in
// between: the next leader counts evicted pods as ending.
#pragma once

#include "base/log/log.hpp"
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

// The functions that an Evictor needs.
struct EvictApi {
  std::function<kube::EvictionResult(const kube::Eviction&)> evict;
  std::function<Result<json::Document>(const std::string& name_space, const std::string& pod)> read;
  // For how long this replica is surely the leader; like BindApi::lead.
  std::function<Result<std::chrono::milliseconds>()> lead;
  // Writes the node for which the pod waits into the pod: kube-scheduler then counts it there, and
  // every replica, also the next leader, keeps a card for it.
  std::function<Status(const podspec::PodRequest& ask, const std::string& node)> nominate;
  std::function<void(kube::Event)> tell;
  std::function<void(LogText text, const PodRef& pod, const Error& error)> warn;
};

struct EvictorOptions {
  std::chrono::milliseconds request{4000};  // timeout of an eviction
  // Time for kube-scheduler to find room itself, which it writes to the pod's nominatedNodeName.
  std::chrono::milliseconds grace{3000};
  std::chrono::milliseconds nominated = std::chrono::seconds(15);  // for how long that is trusted
  // After a disruption budget refused an eviction.
  std::chrono::milliseconds spared = std::chrono::seconds(30);
  std::chrono::milliseconds again = std::chrono::minutes(1);  // doubled each time
  // For how long the nodes of a request are used: kube-scheduler asks again every five minutes,
  // unless another reason than GPUs now excludes all nodes.
  std::chrono::milliseconds fresh = std::chrono::minutes(7);
};

class Evictor {
 public:
  Evictor(ClusterCache& cache, SchedulerCounters& counters, EvictApi api_calls,
          EvictorOptions options = {});

  void refused(UnschedulablePod full, TimePoint now);  // callable from any thread

  // Does what is due; call it every second, from one thread. `unix_s` is the current time.
  void reconcile(TimePoint now, std::int64_t unix_s);
  void stop();  // sends nothing more; requests in progress finish

  // What is being done for a waiting pod, or why nothing is, in one sentence; "": the pod is
  // unknown.
  std::string progress(std::string_view uid) const;

 private:
  struct WaitingPod {
    UnschedulablePod full;
    TimePoint asked;  // the last time
    TimePoint since;
    TimePoint next;
    std::optional<TimePoint> nominated_since;
    unsigned times = 0;  // number of times that pods were evicted for it
    unsigned idle = 0;   // number of times that nothing helped
    std::string progress;
  };
  struct DuePod {
    std::string uid;
    std::int32_t priority = 0;
    TimePoint since;
  };
  // When to look again, and the sentence until then; nullopt: the pod no longer waits.
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
  // False: a pod cannot be evicted now, and is left alone for a while.
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
  std::map<std::string, ProtectedPod, std::less<>> spared_;  // by uid; used only by the one thread
  bool stopped_ = false;
};

}  // namespace gantry::scheduler
