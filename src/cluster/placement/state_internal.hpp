// SPDX-License-Identifier: Apache-2.0
// The state of a Cluster. A filter reads 16 bytes of every card, and the cards of a node are
// adjacent. Everything else (names, which pod is where) is stored separately and is read only for
// one node.
#pragma once

#include "cluster/placement/cluster.hpp"
#include "cluster/placement/name_table_internal.hpp"
#include "cluster/placement/pod_demand_internal.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace gantry::placement {

using NodeId = std::uint32_t;
using PodId = std::uint32_t;
using NamespaceId = std::uint32_t;

// The free part of a card, computed from its account whenever that changes.
struct Card {
  std::uint32_t total_mib = 0;
  std::uint32_t free_mib = 0;  // 0 if more is allocated than the card has
  std::uint16_t cores = 0;     // allocated; at kWholeCardCores and more no pod can be added
  std::uint16_t slots_free = 0;
  std::uint16_t tenants = 0;  // allocated slots
  std::int8_t numa = -1;
  bool usable = false;  // present, healthy, not cordoned and not marked unhealthy
};
static_assert(sizeof(Card) == 16);

// The maxima over the cards of a node that have slots. A request for more fails without a check of
// each card. In a full cluster, most nodes are refused by this.
struct CardMaxima {
  std::uint32_t total_mib = 0;
  std::uint32_t usable_mib = 0;  // total memory of a usable card
  std::uint32_t free_mib = 0;    // free memory of a usable card
  std::uint32_t slots = 0;       // the smallest number on a card, used or free
  bool operator==(const CardMaxima&) const = default;
};
CardMaxima maxima_of(std::span<const Card> cards);

// Sums over the pods on a card.
struct CardTotals {
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
  std::uint64_t slots = 0;
  bool operator==(const CardTotals&) const = default;
};

struct CardAccount {
  CardTotals sums;
  bool over_reported = false;  // the pods from the API server exceed the card, not the reservations
  podspec::CardInfo facts;

  bool exceeds_capacity() const {
    return sums.mib > facts.mib || sums.cores > kWholeCardCores || sums.slots > facts.slots;
  }
};

// The part of a card of its node that a pod takes. podspec::Charge is the same by UUID, without
// limits.
struct CardCharge {
  std::uint16_t card = 0;  // index among the node's cards
  std::uint16_t slots = 0;
  std::uint32_t cores = 0;
  std::uint64_t mib = 0;
};
void add(CardTotals& sums, const CardCharge& charge);
void subtract(CardTotals& sums, const CardCharge& charge);

struct Pod {
  std::string uid;  // "": the record is free
  std::string name;
  NamespaceId space = 0;
  NodeId node = 0;
  std::int32_t priority = 0;
  bool reserved = false;
  bool nominated = false;  // reserved, but other pods still use the room
  std::vector<CardCharge> charges;
  // The pod has a node, but its GPU is not known: it is charged to every card until one is reserved
  // for it.
  std::unique_ptr<podspec::PodRequest> unplaced;
  bool charged_to_every_card() const { return unplaced != nullptr && !reserved; }
  std::uint64_t quota_mib = 0;
  std::uint64_t quota_cores = 0;
};

struct Node {
  std::uint32_t first = 0;  // index in State::cards
  std::uint16_t count = 0;
  std::uint16_t own = 0;   // the first of them; the others are unknown cards that pods name
  std::uint16_t room = 0;  // capacity of the range in State::cards
  std::uint32_t unit_mib = 1024;
  std::uint16_t whole_gpus = 0;
  bool known = false;  // from set_node; false: only pods name the node
  bool ready = true;
  bool marked_unhealthy = false;  // at least one of its cards
  CardMaxima maxima;
};

struct NodeDetails {
  std::string address;
  std::vector<PodId> pods;
};

struct NamespaceRecord {
  std::string name;
  Quota quota;
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
  std::uint32_t pods = 0;
};
bool within(const NamespaceRecord& space, std::uint64_t mib,
            std::uint64_t cores);  // with these added
bool within(const NamespaceRecord& space, const std::vector<CardCharge>& charges);

struct RecordOwners {
  NodeId node = 0;
  NamespaceId space = 0;
};

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
template <class Id>
using StringMap = std::unordered_map<std::string, Id, TextHash, std::equal_to<>>;

// A node in its current state, or in a hypothetical one.
struct NodeState {
  std::span<const Card> cards;            // the node's own cards
  std::span<const CardAccount> accounts;  // one for each card, for affinity and links
  const Node* node = nullptr;
  CardMaxima maxima;  // of `cards`

  NodeState with(std::span<const Card> others) const {
    return {.cards = others, .accounts = accounts, .node = node, .maxima = maxima_of(others)};
  }
};

// The cards of each container, as indexes on the node.
using CardChoice = std::vector<std::vector<std::uint16_t>>;

inline constexpr std::size_t kPrefetchNodes = 16;  // nodes whose memory is prefetched

struct Cluster::State {
  Options options;
  std::vector<Card> cards;
  std::vector<CardAccount> accounts;  // one for each of `cards`
  std::vector<Node> nodes;
  std::vector<NodeDetails> more;  // one for each of `nodes`
  std::vector<Pod> pods;
  std::vector<PodId> nominated;  // only few
  std::vector<NamespaceRecord> namespaces;
  NameTable node_names;
  NameTable pod_ids;  // by uid
  StringMap<NamespaceId> namespace_ids;
  std::vector<NodeId> free_nodes;
  std::vector<PodId> free_pods;
  std::vector<NamespaceId> free_namespaces;
  std::vector<std::pair<std::uint16_t, std::uint32_t>> free_cards;  // room, first

  // ---- names
  std::optional<NodeId> find_node(std::string_view name) const;
  NodeId node(std::string_view name);  // created if it does not exist
  void forget_node(NodeId id);         // if nothing refers to it any more
  NamespaceId space(std::string_view name);
  void forget_namespace(NamespaceId id);
  // The state without that pod; nullopt: the namespace has no quota.
  std::optional<NamespaceRecord> namespace_without(std::string_view name,
                                                   std::optional<PodId> gone) const;

  // Prefetches the memory for the next lookups, step by step for all names.
  void prefetch(std::span<const std::string_view> names,
                std::array<std::uint64_t, kPrefetchNodes>& hashes) const;

  // ---- cards
  NodeState node_state(NodeId id) const {
    const auto& at = nodes[id];
    return {.cards = {cards.data() + at.first, at.own},
            .accounts = {accounts.data() + at.first, at.own},
            .node = &at,
            .maxima = at.maxima};
  }
  // The node's own cards without these pods.
  std::vector<Card> cards_without(NodeId id, std::span<const PodId> gone) const;
  // The pods that do not block this pod: its own record, and nominations of pods with lower
  // priority.
  std::vector<PodId> pods_to_ignore(const podspec::PodRequest& ask) const;
  std::vector<PodId> of_node(NodeId id, std::span<const PodId> pods) const;
  void set_cards(NodeId id, const std::vector<podspec::CardInfo>& facts);
  // Added as an unknown card if the node does not have it.
  std::uint16_t card(NodeId id, std::string_view uuid);
  void make_room(NodeId id, std::size_t count);
  void refresh(NodeId id, std::uint16_t card);

  // ---- pods
  void charge(const Pod& pod);
  void uncharge(const Pod& pod);
  std::vector<CardCharge> charges(NodeId id, const podspec::PodRequest& ask,
                                  const podspec::Placement& placement);
  std::vector<CardCharge> charges_for_every_card(NodeId id, const podspec::PodRequest& ask) const;
  Pod& add_pod(const podspec::PodRequest& ask, NodeId node);
  // A record for the pod on that node that is not charged yet: its existing record (`before`) if
  // that is on the node. References to other nodes are put into `had`, to be forgotten later.
  Pod& replace_pod(std::optional<PodId> before, const podspec::PodRequest& ask, NodeId node,
                   std::optional<RecordOwners>& had);
  std::optional<PodId> find_pod(std::string_view uid) const;
  // Removes the pod's charges and its entries in the lists. What only this pod referred to is
  // forgotten later, so that another record can take its place.
  std::optional<RecordOwners> remove_record(std::string_view uid);
  void forget(const std::optional<RecordOwners>& named);
  Status may_reserve(std::optional<PodId> before, NodeId node) const;
  struct CardDecision {
    NodeId node = 0;
    podspec::Placement placement;
    std::vector<CardCharge> charges;
  };
  Result<CardDecision> choose(const podspec::PodRequest& ask, std::string_view node,
                              std::span<const PodId> gone) const;
  enum class ReserveMode : std::uint8_t { Now, Later };
  // Makes the pod's new record with these reserved or nominated charges.
  Pod& take(const podspec::PodRequest& ask, NodeId node, std::vector<CardCharge> charges,
            ReserveMode hold);
  void end_nominations_below(const Pod& pod);  // whose room it has taken
  void count(Pod& pod);                        // its charges, in the quota of its namespace
  void discount(Pod& pod);
  void add_charges(Pod& pod);  // adds known charges to the accounts and the quota
  void remove_charges(Pod& pod);
};

// ---- decisions for a current or hypothetical node; they change nothing

struct FindResult {
  Refusal refusal = Refusal::None;
  int score = 0;
  CardChoice choice;  // only if requested
};
enum class FindDetail : std::uint8_t { Score, CardMask };

FindResult find(const NodeState& node_state, PodDemand& demand, const Options& options,
                FindDetail answer);

// The parts of cards that the pod takes there.
std::vector<CardCharge> charges(const NodeState& node_state, const PodDemand& demand,
                                const CardChoice& choice);

}  // namespace gantry::placement
