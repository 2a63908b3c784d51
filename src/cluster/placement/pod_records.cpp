// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/state_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::placement {
namespace {

constexpr std::uint64_t kMaxCoresSum = 100'000;

}  // namespace

void add(CardTotals& sums, const CardCharge& charge) {
  sums.mib += charge.mib;
  sums.cores += charge.cores;
  sums.slots += charge.slots;
}

void subtract(CardTotals& sums, const CardCharge& charge) {
  sums.mib -= charge.mib;
  sums.cores -= charge.cores;
  sums.slots -= charge.slots;
}

bool within(const NamespaceRecord& space, std::uint64_t mib, std::uint64_t cores) {
  return (space.quota.mib == 0 || space.mib + mib <= space.quota.mib) &&
         (space.quota.cores == 0 || space.cores + cores <= space.quota.cores);
}

bool within(const NamespaceRecord& space, const std::vector<CardCharge>& charges) {
  std::uint64_t mib = 0;
  std::uint64_t cores = 0;
  for (const auto& charge : charges) {
    mib += charge.mib;
    cores += charge.cores;
  }
  return within(space, mib, cores);
}

void Cluster::State::charge(const Pod& pod) {
  for (const auto& charge : pod.charges) {
    if (charge.card >= nodes[pod.node].count) continue;
    auto& account = accounts[nodes[pod.node].first + charge.card];
    add(account.sums, charge);
    if (!pod.reserved || pod.nominated)
      account.over_reported = true;  // refresh resets it if it is not true
    refresh(pod.node, charge.card);
  }
}

void Cluster::State::uncharge(const Pod& pod) {
  for (const auto& charge : pod.charges) {
    if (charge.card >= nodes[pod.node].count) continue;
    auto& account = accounts[nodes[pod.node].first + charge.card];
    subtract(account.sums, charge);
    refresh(pod.node, charge.card);
  }
}

std::vector<CardCharge> Cluster::State::charges(NodeId id, const podspec::PodRequest& ask,
                                                const podspec::Placement& placement) {
  std::vector<CardCharge> made;
  for (const auto& part : podspec::charges(ask, placement)) {
    const auto at = card(id, part.uuid.text);
    made.push_back(
        {.card = at,
         .slots = static_cast<std::uint16_t>(std::min(part.slots, 1024U)),
         .cores = static_cast<std::uint32_t>(std::min<std::uint64_t>(part.cores, kMaxCoresSum)),
         .mib = std::min(part.mib, kMaxMib)});
  }
  return made;
}

// As if all containers were on each card. A pod that whole GPUs satisfy is on none of them.
std::vector<CardCharge> Cluster::State::charges_for_every_card(
    NodeId id, const podspec::PodRequest& ask) const {
  if (!ask.shared() && nodes[id].whole_gpus > 0) return {};
  const PodDemand demand(ask);
  const auto node_state = this->node_state(id);
  std::vector<CardCharge> made;
  for (std::size_t i = 0; i < node_state.cards.size(); ++i) {
    const auto load =
        demand.load(demand.all(), node_state.cards[i].total_mib, node_state.node->unit_mib);
    made.push_back({.card = static_cast<std::uint16_t>(i),
                    .slots = static_cast<std::uint16_t>(load.slots),
                    .cores = load.cores,
                    .mib = load.mib});
  }
  return made;
}

Pod& Cluster::State::add_pod(const podspec::PodRequest& ask, NodeId node) {
  PodId id = 0;
  if (free_pods.empty()) {
    id = static_cast<PodId>(pods.size());
    pods.emplace_back();
  } else {
    id = free_pods.back();
    free_pods.pop_back();
  }
  pod_ids.insert(ask.pod.uid, id);
  auto& pod = pods[id];
  pod.uid = ask.pod.uid;
  pod.name = ask.pod.name;
  pod.priority = ask.priority;
  pod.space = space(ask.pod.name_space);
  pod.node = node;
  more[node].pods.push_back(id);
  return pod;
}

Pod& Cluster::State::replace_pod(std::optional<PodId> before, const podspec::PodRequest& ask,
                                 NodeId node, std::optional<RecordOwners>& had) {
  if (!before) return add_pod(ask, node);
  auto& pod = pods[*before];
  if (pod.node != node || namespaces[pod.space].name != ask.pod.name_space) {
    had = remove_record(ask.pod.uid);
    return add_pod(ask, node);
  }
  remove_charges(pod);
  if (pod.nominated) std::erase(nominated, *before);
  pod.nominated = false;
  pod.name = ask.pod.name;
  pod.priority = ask.priority;
  pod.reserved = false;
  pod.charges.clear();
  pod.unplaced.reset();
  return pod;
}

void Cluster::State::count(Pod& pod) {
  for (const auto& charge : pod.charges) {
    if (!pod.charged_to_every_card()) {
      pod.quota_mib += charge.mib;
      pod.quota_cores += charge.cores;
    } else {  // it will be one of these
      pod.quota_mib = std::max(pod.quota_mib, charge.mib);
      pod.quota_cores = std::max<std::uint64_t>(pod.quota_cores, charge.cores);
    }
  }
  auto& space = namespaces[pod.space];
  space.mib += pod.quota_mib;
  space.cores += pod.quota_cores;
}

void Cluster::State::discount(Pod& pod) {
  auto& space = namespaces[pod.space];
  space.mib -= pod.quota_mib;
  space.cores -= pod.quota_cores;
  pod.quota_mib = pod.quota_cores = 0;
}

void Cluster::State::add_charges(Pod& pod) {
  charge(pod);
  count(pod);
  ++namespaces[pod.space].pods;
}

void Cluster::State::remove_charges(Pod& pod) {
  uncharge(pod);
  discount(pod);
  --namespaces[pod.space].pods;
}

std::optional<PodId> Cluster::State::find_pod(std::string_view uid) const {
  return pod_ids.find(uid);
}

std::optional<RecordOwners> Cluster::State::remove_record(std::string_view uid) {
  const auto found = pod_ids.find(uid);
  if (!found) return std::nullopt;
  const auto id = *found;
  auto& pod = pods[id];
  const RecordOwners named{.node = pod.node, .space = pod.space};
  remove_charges(pod);
  if (pod.nominated) std::erase(nominated, id);
  std::erase(more[pod.node].pods, id);
  pod_ids.erase(uid);
  pod = {};
  free_pods.push_back(id);
  return named;
}

void Cluster::State::forget(const std::optional<RecordOwners>& named) {
  if (!named) return;
  forget_node(named->node);
  forget_namespace(named->space);
}

Pod& Cluster::State::take(const podspec::PodRequest& ask, NodeId node,
                          std::vector<CardCharge> charges, ReserveMode hold) {
  const auto before = find_pod(ask.pod.uid);
  std::unique_ptr<podspec::PodRequest> unplaced;
  if (before) unplaced = std::move(pods[*before].unplaced);
  std::optional<RecordOwners> had;
  auto& pod = replace_pod(before, ask, node, had);
  pod.reserved = true;
  pod.unplaced = std::move(unplaced);
  pod.charges = std::move(charges);
  pod.nominated = hold == ReserveMode::Later;
  if (pod.nominated) nominated.push_back(static_cast<PodId>(&pod - pods.data()));
  add_charges(pod);
  forget(had);
  return pod;
}

std::vector<PodId> Cluster::State::pods_to_ignore(const podspec::PodRequest& ask) const {
  std::vector<PodId> pods_aside;
  if (const auto own = find_pod(ask.pod.uid)) pods_aside.push_back(*own);
  for (const auto id : nominated) {
    if (pods[id].priority < ask.priority && pods[id].uid != ask.pod.uid) pods_aside.push_back(id);
  }
  return pods_aside;
}

std::vector<PodId> Cluster::State::of_node(NodeId id, std::span<const PodId> among) const {
  std::vector<PodId> there;
  for (const auto pod : among)
    if (pods[pod].node == id) there.push_back(pod);
  return there;
}

void Cluster::State::end_nominations_below(const Pod& pod) {
  std::vector<std::string> ended;
  for (const auto id : nominated) {
    const auto& other = pods[id];
    if (other.node != pod.node || other.priority >= pod.priority) continue;
    const bool lost =
        std::any_of(other.charges.begin(), other.charges.end(), [&](const CardCharge& c) {
          return c.card < nodes[pod.node].count &&
                 accounts[nodes[pod.node].first + c.card].exceeds_capacity() &&
                 std::any_of(pod.charges.begin(), pod.charges.end(),
                             [&](const CardCharge& own) { return own.card == c.card; });
        });
    if (lost) ended.push_back(other.uid);
  }
  for (const auto& uid : ended) forget(remove_record(uid));
}

Status Cluster::State::may_reserve(std::optional<PodId> before, NodeId node) const {
  if (!before || pods[*before].reserved) return {};
  const auto& pod = pods[*before];
  if (pod.unplaced != nullptr && pod.node == node) return {};
  return Error(Errc::Exists,
               fmt::format("pod {}/{} is already placed on node {}", namespaces[pod.space].name,
                           pod.name, node_names[pod.node]));
}

}  // namespace gantry::placement
