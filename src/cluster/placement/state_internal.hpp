// SPDX-License-Identifier: Apache-2.0
// What a Cluster remembers. What a filter reads of every card is 16 bytes, the cards of a node side
// by side; everything else (names, who is where) is elsewhere and is looked at for one node only.
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

// What a card has left, worked out from its books whenever they change.
struct Card {
  std::uint32_t total_mib = 0;
  std::uint32_t free_mib = 0;  // 0 where more is promised than there is
  std::uint16_t cores = 0;     // promised; kAllCores and more: nobody joins
  std::uint16_t slots_free = 0;
  std::uint16_t tenants = 0;  // slots promised
  std::int8_t numa = -1;
  bool usable = false;  // there, healthy, not cordoned and not barred
};
static_assert(sizeof(Card) == 16);

// The most that any one card of a node has, of those with slots: what asks for more fails by this
// alone, without a look at the cards. In a full cluster that is what most nodes answer.
struct CardMaxima {
  std::uint32_t total_mib = 0;
  std::uint32_t usable_mib = 0;  // in all, of a usable one
  std::uint32_t free_mib = 0;    // of a usable one
  std::uint32_t slots = 0;       // that each of them has, in use or not
  bool operator==(const CardMaxima&) const = default;
};
CardMaxima maxima_of(std::span<const Card> cards);

// Sums of what the pods on a card say.
struct CardTotals {
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
  std::uint64_t slots = 0;
  bool operator==(const CardTotals&) const = default;
};

struct CardAccount {
  CardTotals sums;
  bool over_reported = false;  // more than there is, by what we were told, not by what was reserved
  podspec::CardInfo facts;

  bool exceeds_capacity() const {
    return sums.mib > facts.mib || sums.cores > kWholeCardCores || sums.slots > facts.slots;
  }
};

struct Charge {
  std::uint16_t card = 0;  // among the node's
  std::uint16_t slots = 0;
  std::uint32_t cores = 0;
  std::uint64_t mib = 0;
};
void add(CardTotals& sums, const Charge& charge);
void subtract(CardTotals& sums, const Charge& charge);

struct Pod {
  std::string uid;  // "": a record that is free
  std::string name;
  NamespaceId space = 0;
  NodeId node = 0;
  std::int32_t priority = 0;
  bool reserved = false;
  bool nominated = false;  // reserved, of what others still have
  std::vector<Charge> charges;
  // It has a node, its GPU is not known: charged to every card, until one is reserved for it.
  std::unique_ptr<podspec::PodRequest> unplaced;
  bool charged_to_every_card() const { return unplaced != nullptr && !reserved; }
  std::uint64_t quota_mib = 0;
  std::uint64_t quota_cores = 0;
};

struct Node {
  std::uint32_t first = 0;  // of State::cards
  std::uint16_t count = 0;
  std::uint16_t own = 0;   // the first of them; the others are strangers that pods name
  std::uint16_t room = 0;  // cards that fit there
  std::uint32_t unit_mib = 1024;
  std::uint16_t whole_gpus = 0;
  bool known = false;  // told by set_node; false: only pods name it
  bool ready = true;
  bool marked_unhealthy = false;  // some card of it
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
            std::uint64_t cores);  // with these on top
bool within(const NamespaceRecord& space, const std::vector<Charge>& charges);

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

// A node as it is, or as it would be.
struct NodeState {
  std::span<const Card> cards;            // the node's own
  std::span<const CardAccount> accounts;  // beside them, for wishes and links
  const Node* node = nullptr;
  CardMaxima maxima;  // of `cards`

  NodeState with(std::span<const Card> others) const {
    return {.cards = others, .accounts = accounts, .node = node, .maxima = maxima_of(others)};
  }
};

// Where each container of a pod would be: places of cards on the node.
using CardChoice = std::vector<std::vector<std::uint16_t>>;

inline constexpr std::size_t kPrefetchNodes = 16;  // nodes whose memory is asked for in advance

struct Cluster::State {
  Options options;
  std::vector<Card> cards;
  std::vector<CardAccount> accounts;  // beside cards
  std::vector<Node> nodes;
  std::vector<NodeDetails> more;  // beside nodes
  std::vector<Pod> pods;
  std::vector<PodId> nominated;  // few
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
  NodeId node(std::string_view name);  // made where there is none
  void forget_node(NodeId id);         // where nothing names it any more
  NamespaceId space(std::string_view name);
  void forget_namespace(NamespaceId id);
  // As it would be without that pod; nullopt: no quota.
  std::optional<NamespaceRecord> namespace_without(std::string_view name,
                                                   std::optional<PodId> gone) const;

  // Brings what the next lookups need nearer, step by step for all of them.
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
  // Its own cards as they would be if these pods were gone.
  std::vector<Card> cards_without(NodeId id, std::span<const PodId> gone) const;
  // What does not stand in this pod's way: its own record, and room kept for who matters less.
  std::vector<PodId> pods_to_ignore(const podspec::PodRequest& ask) const;
  std::vector<PodId> of_node(NodeId id, std::span<const PodId> pods) const;
  void set_cards(NodeId id, const std::vector<podspec::CardInfo>& facts);
  std::uint16_t card(NodeId id, std::string_view uuid);  // a stranger where the node has none such
  void make_room(NodeId id, std::size_t count);
  void refresh(NodeId id, std::uint16_t card);

  // ---- pods
  void charge(const Pod& pod);
  void uncharge(const Pod& pod);
  std::vector<Charge> charges(NodeId id, const podspec::PodRequest& ask,
                              const podspec::Placement& placement);
  std::vector<Charge> charges_for_every_card(NodeId id, const podspec::PodRequest& ask) const;
  Pod& add_pod(const podspec::PodRequest& ask, NodeId node);
  // A record for it on that node, in none of the books: the one that it has (`before`) where that
  // is there already. What it named elsewhere is in `had`, to be forgotten later.
  Pod& replace_pod(std::optional<PodId> before, const podspec::PodRequest& ask, NodeId node,
                   std::optional<RecordOwners>& had);
  std::optional<PodId> find_pod(std::string_view uid) const;
  // Out of the books and the lists. What it may have been the last to name is forgotten later, so
  // that another record can take its place.
  std::optional<RecordOwners> remove_record(std::string_view uid);
  void forget(const std::optional<RecordOwners>& named);
  Status may_reserve(std::optional<PodId> before, NodeId node) const;
  struct CardDecision {
    NodeId node = 0;
    podspec::Placement placement;
    std::vector<Charge> charges;
  };
  Result<CardDecision> choose(const podspec::PodRequest& ask, std::string_view node,
                              std::span<const PodId> gone) const;
  enum class ReserveMode : std::uint8_t { Now, Later };
  // The pod's new record: these are reserved for it, or kept.
  Pod& take(const podspec::PodRequest& ask, NodeId node, std::vector<Charge> charges,
            ReserveMode hold);
  void end_nominations_below(const Pod& pod);  // that it has taken the room of
  void count(Pod& pod);                        // its charges, against the quota of its namespace
  void discount(Pod& pod);
  void add_charges(Pod& pod);  // charges are known: into the books and the quota
  void remove_charges(Pod& pod);
};

// ---- decisions, on a node as it is or as it would be: nothing changes

struct FindResult {
  Refusal refusal = Refusal::None;
  int score = 0;
  CardChoice choice;  // only where asked for
};
enum class FindDetail : std::uint8_t { Score, CardMask };

FindResult find(const NodeState& node_state, PodDemand& demand, const Options& options,
                FindDetail answer);

// What the pod takes there, by card.
std::vector<Charge> charges(const NodeState& node_state, const PodDemand& demand,
                            const CardChoice& choice);

}  // namespace gantry::placement
