// SPDX-License-Identifier: Apache-2.0
// The scheduler cache: pods, nodes and quotas from the API server, and assumed pods; a
// placement::Cluster behind one lock. Except for assumed pods whose Binding is in progress, it can
// be rebuilt from lists of the API server.
#pragma once

#include "base/core/object_ref.hpp"
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
inline TimePoint now_steady() {
  return std::chrono::steady_clock::now();
}

// The contents of one Binding.
struct BindDecision {
  podspec::Placement placement;
  std::map<std::string, std::string> annotations;
  bool again = false;  // sent before, without an answer: that Binding may still succeed
};

// An assumed pod: decided, but the watch has not shown its Binding yet.
struct AssumedPod {
  enum class State : std::uint8_t {
    Sending,  // its Binding is in progress
    Bound,    // the API server has accepted it
    Unknown   // no answer came: it may have been accepted, or may still be
  };
  PodRef pod;
  std::string node;
  State state = State::Sending;
  TimePoint since;
};

// A pod whose eviction would make room.
struct Victim {
  PodRef pod;
  std::int32_t priority = 0;
};

// How room can be made for a pod. No `victims`: the pods that are being deleted make enough room.
struct PreemptionPlan {
  std::string node;
  std::vector<std::string> terminating;  // uids of pods that are being deleted
  std::vector<Victim> victims;
};

// Room that is kept for a waiting pod.
struct Nomination {
  enum class Cause : std::uint8_t {
    Evicted,   // we evict pods for it
    Nominated  // kube-scheduler makes room for it
  };
  std::string node;
  std::vector<std::string> awaited;  // uids of pods that must end first
  Cause cause = Cause::Evicted;
  TimePoint since;
  std::optional<TimePoint> free_since;  // since when all of them are gone
};

class ClusterCache {
 public:
  explicit ClusterCache(placement::Options options = {});
  ~ClusterCache();
  ClusterCache(const ClusterCache&) = delete;
  ClusterCache& operator=(const ClusterCache&) = delete;

  // ---- updates from the API server. An error is for the log: the object then counts as having no
  // GPU.
  Status set_node(const json::Value& node);
  void remove_node(std::string_view name);
  // Any pod and any change of it; a version older than the known one is ignored.
  Status set_pod(const json::Value& pod, TimePoint now);
  void remove_pod(std::string_view uid, TimePoint now);
  // A ConfigMap in kube-system (podspec/unhealthy_gpus.hpp), or its deletion, by name. The cards
  // that it names are not allocated any more; pods on them still count.
  Status set_unhealthy_gpus(const json::Value& config_map);
  void remove_unhealthy_gpus(std::string_view config_map);
  Status set_namespace(const json::Value& name_space);
  void remove_namespace(std::string_view name);
  Status set_resource_quota(const json::Value& quota);
  void remove_resource_quota(std::string_view name_space, std::string_view name);

  // ---- questions
  std::uint64_t generation() const;  // changes whenever an answer could change
  // Returns the generation of the answer.
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

  // A pod without a node that asks for GPUs, by uid; nullopt if it is unknown.
  std::optional<podspec::PodRequest> pending(std::string_view uid) const;
  std::size_t pods() const;  // that hold something, including assumed pods

  // ---- preemption
  // Finds the node on which the fewest and least important pods would have to be evicted. Victims
  // are only pods that we placed, no static pods, and no pods in `spared`. A pod that is being
  // deleted counts as gone, unless it should have been gone a minute before `unix_s`. NotFound:
  // eviction does not help.
  Result<PreemptionPlan> plan_preemption(const podspec::PodRequest& ask,
                                         std::span<const std::string> nodes,
                                         const placement::IsProtected& spared,
                                         std::int64_t unix_s) const;
  // Keeps the room until the pod is bound or gone, or for a limited time: one minute after the last
  // of the awaited pods has ended, and ten minutes in total. Pods of lower priority cannot take it.
  Result<podspec::Placement> add_nomination(const podspec::PodRequest& ask,
                                            const PreemptionPlan& room, TimePoint now);
  void end_nomination(std::string_view uid);
  void expire_nominations(TimePoint now);
  std::optional<Nomination> nomination(std::string_view uid) const;
  // The node on which kube-scheduler makes room for this waiting pod; "": none.
  std::string nominated(std::string_view uid) const;

  // ---- assumed pods
  // The node of a Binding of this pod that was sent and whose result is unknown.
  std::optional<std::string> node_of_unknown_binding(std::string_view uid) const;
  // Chooses and holds the cards. A pod that is already assumed on this node gets the same cards; on
  // another node Busy, because the first Binding may still succeed.
  Result<BindDecision> assumed(const podspec::PodRequest& ask, std::string_view node,
                               std::int64_t unix_ns, TimePoint now);
  void mark(std::string_view uid, AssumedPod::State state, TimePoint now);
  void release(std::string_view uid);
  void release(const AssumedPod& seen);  // unless its state has changed since then
  std::vector<AssumedPod> assumed_pods() const;

 private:
  struct PodRecord;
  struct AssumedEntry {
    AssumedPod assumed;
    BindDecision decision;
  };
  struct NamespaceQuota {
    placement::Quota own;                            // from annotations of the namespace
    std::map<std::string, placement::Quota> quotas;  // ResourceQuota objects by name
    placement::Quota effective;                      // the strictest of all
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
  // By node, pods whose cards depend on the node's cards: checked again when those change.
  std::unordered_map<std::string, std::unordered_set<std::string>> placed_by_index_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> unhealthy_;  // by node: indexes
  std::map<std::string, NamespaceQuota, std::less<>> quotas_;
  // Uids of pods that ended recently: a list that was requested earlier may still contain them.
  std::unordered_set<std::string> ended_;
  struct EndedPod {
    std::string uid;
    TimePoint when;
  };
  std::deque<EndedPod> ended_order_;
};

}  // namespace gantry::scheduler
