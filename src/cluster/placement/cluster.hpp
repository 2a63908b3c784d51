// SPDX-License-Identifier: Apache-2.0
// Which GPU of which node a pod's shares go to. Holds what every card has promised and to whom;
// asked by node name, answered from memory. Pure: no clock, no threads, no API. Everything that
// changes it is one call, and the same calls in the same order give the same state.
#pragma once

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

// Why a node cannot have a pod: few, and the same words for every node, because the scheduler
// counts equal ones in its event.
enum class Refusal : std::uint8_t {
  None,
  NoSharedGpus,  // the node has none
  TooBig,        // no card here is that large, empty or not: preemption does not help
  NoMatch,       // types, UUIDs or NUMA wishes: preemption does not help
  Unhealthy,     // cards that would fit are unhealthy, cordoned or barred
  Memory,        // no single card (or not enough different ones) has that much free
  Cores,         // memory would be there, time is promised
  Slots,
  Exclusive,  // asked for a card alone, and somebody is on each
  Quota       // of the namespace
};
bool resolvable(Refusal refusal);  // others leaving could help
// "no GPU here has 10 GiB of memory free"; the ask's numbers only, never the node's but its unit.
std::string describe(Refusal refusal, const podspec::PodRequest& ask,
                     std::uint64_t unit_mib = 1024);

struct Options {
  podspec::PlacementPolicy nodes = podspec::PlacementPolicy::Pack;
  podspec::PlacementPolicy gpus = podspec::PlacementPolicy::Pack;
};

struct Quota {
  std::uint64_t mib = 0;    // 0: no limit
  std::uint64_t cores = 0;  // sum of per cents; 0: no limit
};

struct Fit {
  Refusal refusal = Refusal::None;
  bool marked_unhealthy = false;  // a ConfigMap keeps cards of the node out of use
  int score = 0;                  // 0..10, as extenders have it; 0 where refused
  std::uint32_t unit_mib = 1024;  // of the node, for the sentence
};
// The same for that node, with the ConfigMap that keeps cards of it out of use where those might
// have helped. NODE: one sentence for all such nodes.
std::string describe(const Fit& fit, const podspec::PodRequest& ask,
                     std::string_view node = "NODE");

// ContainerDemand pod on a card, for inspect.
struct Tenant {
  std::string uid;
  std::string name_space;
  std::string name;
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
  std::vector<Tenant> unplaced;   // on the node, GPU not known yet
  std::vector<Tenant> nominated;  // for whom room is kept there: not yet used
};

// Pods that are nobody's victims, by uid; none: all may be.
using IsProtected = std::function<bool(std::string_view uid)>;

// What is promised of a card, kept room among it, without names; and of a namespace's quota.
struct CardUse {
  std::string_view uuid;  // until the next change
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

  // ---- what the API server tells
  void set_node(
      const podspec::NodeInfo& facts);  // new or changed; pods stay, also beyond the total
  void remove_node(std::string_view name);
  // A pod that has a node and is not over. Without a placement it counts against every card of the
  // node until it has one. Replaces what was reserved for its uid.
  void set_pod(const podspec::PodRequest& ask, std::string_view node,
               const podspec::Placement* placement);
  void remove_pod(std::string_view uid);
  void set_quota(std::string_view name_space, Quota quota);

  // ---- what the scheduler asks; nothing changes
  Fit fit(const podspec::PodRequest& ask, std::string_view node) const;
  void fit_all(const podspec::PodRequest& ask, std::span<const std::string_view> nodes,
               std::vector<Fit>& fits) const;  // one pass, no allocation for each node
  // The fewest and least important pods below the ask's priority whose end makes room, after those
  // in `chosen` (by uid), which go in any case. NotFound: nothing helps.
  Result<std::vector<std::string>> victims(const podspec::PodRequest& ask, std::string_view node,
                                           std::span<const std::string> chosen,
                                           const IsProtected& spared = {}) const;
  NodeView view(std::string_view node) const;  // without cards for a node nobody knows
  void uses(std::string_view node, std::vector<CardUse>& cards) const;  // the same in short
  NamespaceUse used(std::string_view name_space) const;
  std::vector<std::string> nodes() const;  // by name

  // ---- what the scheduler decides
  // Chooses the cards and takes them for this uid, until set_pod, remove_pod or release. A pod that
  // has a reservation gets a new one. Busy, with the sentence, where it does not fit any more; what
  // the pod had stays then. Exists: set_pod has said where it is. A pod that set_pod put on this
  // node without a placement gets one. Empty where whole GPUs serve it: the kubelet hands them out.
  Result<podspec::Placement> reserve(const podspec::PodRequest& ask, std::string_view node);
  void release(std::string_view uid);  // a reservation only; a pod set by set_pod stays
  // Keeps room for a pod that waits until those in `going` (by uid) are gone: which cards it would
  // have then. Nobody of its priority or a lower one gets that room; whoever matters more does not
  // see it, and ends it by taking it. Ends like a reservation. Errors as reserve's.
  Result<podspec::Placement> add_nomination(const podspec::PodRequest& ask, std::string_view node,
                                            std::span<const std::string> going);
  bool is_nominated(std::string_view uid) const;

  // Sums are what the pods say, nothing is promised twice by reserve. For tests and the simulator:
  // Internal, naming the card, where something does not add up.
  Status check() const;

  struct State;  // known to this module only

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gantry::placement
