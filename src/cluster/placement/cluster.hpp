// SPDX-License-Identifier: Apache-2.0
// Decides which GPU of which node gets a pod's shares. Holds what is allocated of every card and to
// which pod; answers by node name, from memory. Pure: no clock, no threads, no API. Each change is
// one call, and the same calls in the same order give the same state.
#pragma once

#include "base/core/object_ref.hpp"
#include "base/core/result.hpp"
#include "cluster/podspec/node.hpp"
#include "cluster/podspec/placement.hpp"
#include "cluster/podspec/request.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::placement {

// Why a node cannot take a pod. There are few reasons, with the same sentence for every node,
// because the scheduler counts equal sentences in its event.
enum class Refusal : std::uint8_t {
  None,
  NoSharedGpus,  // the node has no shared GPUs
  TooBig,        // no card is that large, even if empty: preemption does not help
  NoMatch,       // types, UUIDs or NUMA affinity: preemption does not help
  Unhealthy,     // the cards that would fit are unhealthy, cordoned or marked unhealthy
  Memory,        // no single card (or not enough different cards) has that much free
  Cores,         // there is enough memory, but the compute time is allocated
  Slots,
  Exclusive,  // asks for a card alone, and every card has other pods
  Quota       // of the namespace
};
bool resolvable(Refusal refusal);  // could fit after other pods have left
// "no GPU here has 10 GiB of memory free". Contains only numbers of the request, and of the node
// only its unit.
std::string describe(Refusal refusal, const podspec::PodRequest& ask,
                     std::uint64_t unit_mib = 1024);

struct Options {
  podspec::PlacementPolicy nodes = podspec::PlacementPolicy::Pack;
  podspec::PlacementPolicy gpus = podspec::PlacementPolicy::Pack;
};

struct Quota {
  std::uint64_t mib = 0;    // 0: no limit
  std::uint64_t cores = 0;  // sum of percentages; 0: no limit
};

struct Fit {
  Refusal refusal = Refusal::None;
  bool marked_unhealthy = false;  // a ConfigMap marks cards of the node as unhealthy
  int score = 0;                  // 0..10, as for extenders; 0 if refused
  std::uint32_t unit_mib = 1024;  // of the node, for the sentence
};
// The same for that node. Names the ConfigMap that marks cards as unhealthy, if those cards might
// have helped. NODE: one sentence for all such nodes.
std::string describe(const Fit& fit, const podspec::PodRequest& ask,
                     std::string_view node = "NODE");

// A pod on a card, for inspect.
struct Tenant {
  PodRef pod;
  std::int32_t priority = 0;
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;
};
struct CardView {
  podspec::CardInfo facts;
  std::uint64_t used_mib = 0;
  std::uint32_t used_cores = 0;
  std::uint32_t used_slots = 0;
  std::vector<Tenant> tenants;  // by uid
};
struct NodeView {
  podspec::NodeInfo facts;
  std::vector<CardView> cards;
  std::vector<Tenant> unplaced;   // on the node, but their GPU is not known yet
  std::vector<Tenant> nominated;  // room is kept for them there, but they do not use it yet
};

// Says whether a pod, by uid, must not be evicted; empty: every pod may be.
using IsProtected = std::function<bool(std::string_view uid)>;

// What is allocated of a card, including room that is kept, without pod names; and of a namespace's
// quota.
struct CardUse {
  std::string_view uuid;  // valid until the next change
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
  std::uint64_t slots = 0;
};
struct NamespaceUse {
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
};

class Cluster {
 public:
  explicit Cluster(Options options = {});
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  // ---- updates from the API server
  // Adds or changes a node. Its pods stay, even if they exceed its capacity.
  void set_node(const podspec::NodeInfo& facts);
  void remove_node(std::string_view name);
  // Sets a pod that has a node and has not ended. Without a placement, it counts against every card
  // of the node until it has one. Replaces the reservation for its uid.
  void set_pod(const podspec::PodRequest& ask, std::string_view node,
               const podspec::Placement* placement);
  void remove_pod(std::string_view uid);
  void set_quota(std::string_view name_space, Quota quota);

  // ---- questions of the scheduler; they change nothing
  Fit fit(const podspec::PodRequest& ask, std::string_view node) const;
  void fit_all(const podspec::PodRequest& ask, std::span<const std::string_view> nodes,
               std::vector<Fit>& fits) const;  // one pass, without allocating memory for each node
  // The fewest and least important pods with lower priority whose eviction makes room, in addition
  // to those in `chosen` (by uid), which are evicted in any case. NotFound: eviction does not help.
  Result<std::vector<std::string>> victims(const podspec::PodRequest& ask, std::string_view node,
                                           std::span<const std::string> chosen,
                                           const IsProtected& spared = {}) const;
  NodeView view(std::string_view node) const;  // has no cards if the node is unknown
  void uses(std::string_view node, std::vector<CardUse>& cards) const;  // a short form of the same
  NamespaceUse used(std::string_view name_space) const;
  std::vector<std::string> nodes() const;  // by name

  // ---- decisions of the scheduler
  // Chooses cards and reserves them for this uid, until set_pod, remove_pod or release. A pod that
  // has a reservation gets a new one. Busy, with the sentence, if the pod no longer fits; then it
  // keeps what it had. Exists: set_pod has already set its place. A pod that set_pod put on this
  // node without a placement gets one. Empty if whole GPUs satisfy the request: the kubelet
  // allocates those.
  Result<podspec::Placement> reserve(const podspec::PodRequest& ask, std::string_view node);
  void release(std::string_view uid);  // only a reservation; a pod from set_pod stays
  // Keeps room for a pod that waits until the pods in `going` (by uid) are gone, and returns the
  // cards that it would get. Pods of the same or a lower priority cannot take that room. Pods of a
  // higher priority ignore the nomination, and end it if they take the room. Ends like a
  // reservation. Errors as for reserve.
  Result<podspec::Placement> add_nomination(const podspec::PodRequest& ask, std::string_view node,
                                            std::span<const std::string> going);
  bool is_nominated(std::string_view uid) const;

  // Checks that the sums match the pods and that reserve allocated nothing twice. For tests and the
  // simulator. Internal, with the name of the card, if something does not match.
  Status check() const;

  struct State;  // private to this module

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gantry::placement
