// SPDX-License-Identifier: Apache-2.0
// What the API server has told about pods, nodes and quotas, and what has been promised since:
// placement::Cluster behind one lock. It keeps nothing that a list of the API would not give back,
// but the promises whose Binding is on its way.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/placement/cluster.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"
#include "cluster/podspec/unhealthy_gpus.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gantry::scheduler {

using TimePoint = std::chrono::steady_clock::time_point;

// What one Binding shall say.
struct BindDecision {
  podspec::Placement placement;
  std::map<std::string, std::string> annotations;
  bool again = false;  // sent before, without an answer: that one may still come through
};

// A promise that the watch has not shown yet.
struct AssumedPod {
  enum class State : std::uint8_t {
    Sending,  // its Binding is under way
    Bound,    // the API server has taken it
    Unknown   // no answer came: it may have been taken, or may still be
  };
  std::string uid;
  std::string name_space;
  std::string name;
  std::string node;
  State state = State::Sending;
  TimePoint since;
};

// A pod whose end would make room.
struct Victim {
  std::string uid;
  std::string name_space;
  std::string name;
  std::int32_t priority = 0;
};

// How a pod could have a place. Nobody in `victims`: those who are being deleted are enough.
struct PreemptionPlan {
  std::string node;
  std::vector<std::string> terminating;  // uids of those
  std::vector<Victim> victims;
};

// Room that is kept for a pod that waits.
struct Nomination {
  enum class Cause : std::uint8_t {
    Evicted,   // we make it
    Nominated  // kube-scheduler does
  };
  std::string node;
  std::vector<std::string> awaited;  // uids of those who have to go first
  Cause cause = Cause::Evicted;
  TimePoint since;
  std::optional<TimePoint> free_since;  // all of them are gone
};

class ClusterCache {
 public:
  explicit ClusterCache(placement::Options options = {});
  ~ClusterCache();
  ClusterCache(const ClusterCache&) = delete;
  ClusterCache& operator=(const ClusterCache&) = delete;

  // ---- what the API server tells. An error is for the log: the object counts as having no GPU.
  Status set_node(const json::Value& node);
  void remove_node(std::string_view name);
  // Any pod, any news of it; an older version than what is known changes nothing.
  Status set_pod(const json::Value& pod, TimePoint now);
  void remove_pod(std::string_view uid, TimePoint now);
  // A ConfigMap of kube-system (ask/barred.hpp), or its end, by its name: cards that it names are
  // given to nobody; whoever is on them counts as before.
  Status set_unhealthy_gpus(const json::Value& config_map);
  void remove_unhealthy_gpus(std::string_view config_map);
  Status set_namespace(const json::Value& name_space);
  void remove_namespace(std::string_view name);
  Status set_resource_quota(const json::Value& quota);
  void remove_resource_quota(std::string_view name_space, std::string_view name);

  // ---- questions
  std::uint64_t generation() const;  // changes with whatever could change an answer
  // Also says of which generation the answer is.
  std::uint64_t fit(const podspec::PodRequest& ask, std::span<const std::string_view> nodes,
                    std::vector<placement::Fit>& fits) const;
  Result<std::vector<std::string>> victims(const podspec::PodRequest& ask, std::string_view node,
                                           std::span<const std::string> chosen) const;
  placement::NodeView view(std::string_view node) const;
  std::vector<std::string> nodes() const;
  struct QuotaView {
    std::string name_space;
    placement::Quota limit;
  };
  std::vector<QuotaView> quotas() const;

  // A pod that has no node yet and asks for GPUs, by uid; nullopt where it is not known.
  std::optional<podspec::PodRequest> pending(std::string_view uid) const;
  std::size_t pods() const;  // that hold something, promises among them

  // ---- room for those who matter more
  // On which of these nodes the fewest and least important pods would have to go. Only pods that we
  // placed are victims, no static ones, and none that `spared` names. Whoever is being deleted
  // counts as gone, but for one that should have been gone a minute before `unix_s`. NotFound:
  // nothing helps.
  Result<PreemptionPlan> plan_preemption(const podspec::PodRequest& ask,
                                         std::span<const std::string> nodes,
                                         const placement::IsProtected& spared,
                                         std::int64_t unix_s) const;
  // Until the pod is bound or gone, nobody who matters less gets it, or for a while: a minute after
  // the last of those who have to go has gone, and ten minutes in all.
  Result<podspec::Placement> add_nomination(const podspec::PodRequest& ask,
                                            const PreemptionPlan& room, TimePoint now);
  void end_nomination(std::string_view uid);
  void expire_nominations(TimePoint now);
  std::optional<Nomination> nomination(std::string_view uid) const;
  // Of a pod that waits: where kube-scheduler makes room for it; "": nowhere.
  std::string nominated(std::string_view uid) const;

  // ---- promises
  // Where a Binding of this pod has been sent and nobody knows what became of it.
  std::optional<std::string> node_of_unknown_binding(std::string_view uid) const;
  // Chooses and holds the cards. A pod with a promise on this node gets the same again; on another
  // node Busy, because the first Binding may yet be taken.
  Result<BindDecision> assumed(const podspec::PodRequest& ask, std::string_view node,
                               std::int64_t unix_ns, TimePoint now);
  void mark(std::string_view uid, AssumedPod::State state, TimePoint now);
  void release(std::string_view uid);
  void release(const AssumedPod& seen);  // unless something has become of it since it was seen
  std::vector<AssumedPod> assumed_pods() const;

 private:
  struct PodRecord;
  struct AssumedEntry {
    AssumedPod promise;
    BindDecision decision;
  };
  struct NamespaceQuota {
    placement::Quota own;                            // of the namespace's annotations
    std::map<std::string, placement::Quota> quotas;  // ResourceQuota objects by name
    placement::Quota effective;                      // the tightest of all
  };

  Status count(const json::Value& pod, PodRecord& known);
  void note_deletion(const json::Value& pod, const std::string& uid, PodRecord& known);
  void nominate(const std::string& uid, PodRecord& known, std::string node, TimePoint now);
  void renew_nominations(const std::string& node, TimePoint now);
  std::vector<std::string> terminating(const std::string& node, std::int64_t unix_s) const;
  bool any_lower_priority(const std::vector<std::string>& uids, std::int32_t priority) const;
  void drop_nomination(const std::string& uid);
  bool is_waiting(const Nomination& nomination) const;
  Victim victim(const std::string& uid) const;
  void recompute_placements(std::string_view node);
  void mark_unhealthy(podspec::NodeInfo& facts) const;
  void reapply_unhealthy(const std::string& node);
  void forget(std::string_view uid, TimePoint now);
  void remember_ended(std::string_view uid, TimePoint now);
  void release_assumed(const std::string& uid);
  void apply_quota(const std::string& name_space);
  BindDecision decision_of(const podspec::PodRequest& ask, std::string_view node,
                           podspec::Placement placement, std::int64_t unix_ns) const;

  mutable std::mutex mutex_;
  placement::Cluster cluster_;
  std::uint64_t generation_ = 1;
  std::unordered_map<std::string, PodRecord> pods_;        // pods that ask for GPUs, by uid
  std::unordered_map<std::string, AssumedEntry> assumed_;  // by uid
  struct NominationEntry {
    Nomination nomination;
    podspec::PodRequest ask;
  };
  std::unordered_map<std::string, NominationEntry> nominations_;                  // by uid
  std::unordered_map<std::string, std::unordered_set<std::string>> terminating_;  // by node: uids
  std::unordered_map<std::string, std::unordered_set<std::string>> nominated_;    // by node: uids
  // Of those whose cards depend on what the node has, by node: looked at when that changes.
  std::unordered_map<std::string, std::unordered_set<std::string>> placed_by_index_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> unhealthy_;  // by node: indices
  std::map<std::string, NamespaceQuota, std::less<>> quotas_;
  // Uids of pods that ended a short while ago: a list that was asked for before may still name
  // them.
  std::unordered_set<std::string> ended_;
  struct Ended {
    std::string uid;
    TimePoint when;
  };
  std::deque<Ended> ended_order_;
};

}  // namespace gantry::scheduler
