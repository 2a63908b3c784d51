// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/state_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::placement {
namespace {

Tenant tenant(const Pod& pod, const NamespaceRecord& space) {
  return {.pod = {.uid = pod.uid, .name_space = space.name, .name = pod.name},
          .priority = pod.priority};
}

void sort(std::vector<Tenant>& tenants) {
  std::sort(tenants.begin(), tenants.end(),
            [](const Tenant& a, const Tenant& b) { return a.pod.uid < b.pod.uid; });
}

// Room that is kept for a nominated pod is not in use.
void leave_out(std::vector<CardView>& cards, const std::vector<CardCharge>& charges) {
  for (const auto& charge : charges) {
    if (charge.card >= cards.size()) continue;
    auto& card = cards[charge.card];
    card.used_mib -= charge.mib;
    card.used_cores -= charge.cores;
    card.used_slots -= charge.slots;
  }
}

Status check_namespaces(const Cluster::State& state) {
  std::vector<NamespaceRecord> namespaces(state.namespaces.size());
  for (const auto& more : state.more) {
    for (const auto pod_id : more.pods) {
      const auto& pod = state.pods[pod_id];
      auto& space = namespaces[pod.space];
      ++space.pods;
      if (pod.charged_to_every_card()) {
        space.mib += pod.quota_mib;
        space.cores += pod.quota_cores;
        continue;
      }
      for (const auto& charge : pod.charges) {
        space.mib += charge.mib;
        space.cores += charge.cores;
      }
    }
  }
  for (NamespaceId id = 0; id < namespaces.size(); ++id) {
    const auto& said = state.namespaces[id];
    const auto& so = namespaces[id];
    if (so.mib == said.mib && so.cores == said.cores && so.pods == said.pods) continue;
    return Error(
        Errc::Internal,
        fmt::format(
            "namespace {}: its quota counts {} MiB and {} %, but its pods have {} MiB and {} %",
            said.name, said.mib, said.cores, so.mib, so.cores));
  }
  return {};
}

}  // namespace

NodeView Cluster::view(std::string_view node) const {
  NodeView view;
  view.facts.name = std::string(node);
  const auto id = state_->find_node(node);
  if (!id || !state_->nodes[*id].known) return view;
  const auto& at = state_->nodes[*id];
  view.facts.address = state_->more[*id].address;
  view.facts.unit_mib = at.unit_mib;
  view.facts.whole_gpus = at.whole_gpus;
  view.facts.ready = at.ready;
  for (std::uint32_t i = 0; i < at.own; ++i) {
    const auto& account = state_->accounts[at.first + i];
    view.facts.cards.push_back(account.facts);
    view.cards.push_back({.facts = account.facts,
                          .used_mib = account.sums.mib,
                          .used_cores = static_cast<std::uint32_t>(account.sums.cores),
                          .used_slots = static_cast<std::uint32_t>(account.sums.slots)});
  }
  for (const auto pod_id : state_->more[*id].pods) {
    const auto& pod = state_->pods[pod_id];
    auto shown = tenant(pod, state_->namespaces[pod.space]);
    if (pod.charged_to_every_card()) {
      shown.mib = pod.quota_mib;
      shown.cores = static_cast<std::uint32_t>(pod.quota_cores);
      view.unplaced.push_back(shown);
      continue;
    }
    if (pod.nominated) {
      shown.mib = pod.quota_mib;
      shown.cores = static_cast<std::uint32_t>(pod.quota_cores);
      view.nominated.push_back(shown);
      leave_out(view.cards, pod.charges);
      continue;
    }
    for (const auto& charge : pod.charges) {
      if (charge.card >= at.own) continue;
      shown.mib = charge.mib;
      shown.cores = charge.cores;
      view.cards[charge.card].tenants.push_back(shown);
    }
  }
  for (auto& card : view.cards) sort(card.tenants);
  sort(view.unplaced);
  sort(view.nominated);
  return view;
}

void Cluster::uses(std::string_view node, std::vector<CardUse>& cards) const {
  cards.clear();
  const auto id = state_->find_node(node);
  if (!id) return;
  for (const auto& account : state_->node_state(*id).accounts)
    cards.push_back({.uuid = account.facts.uuid.text,
                     .mib = account.sums.mib,
                     .cores = account.sums.cores,
                     .slots = account.sums.slots});
}

NamespaceUse Cluster::used(std::string_view name_space) const {
  const auto found = state_->namespace_ids.find(name_space);
  if (found == state_->namespace_ids.end()) return {};
  const auto& space = state_->namespaces[found->second];
  return {.mib = space.mib, .cores = space.cores};
}

Status Cluster::check() const {
  const auto& state = *state_;
  std::vector<CardTotals> sums(state.cards.size());
  for (NodeId id = 0; id < state.nodes.size(); ++id) {
    const auto& at = state.nodes[id];
    for (const auto pod_id : state.more[id].pods) {
      for (const auto& charge : state.pods[pod_id].charges)
        if (charge.card < at.count) add(sums[at.first + charge.card], charge);
    }
    for (std::uint32_t i = 0; i < at.count; ++i) {
      const auto& account = state.accounts[at.first + i];
      const auto said = [&](std::string_view what) {
        return Error(Errc::Internal, fmt::format("GPU {} of node {}: {}", account.facts.uuid.text,
                                                 state.node_names[id], what));
      };
      if (account.sums != sums[at.first + i])
        return said(fmt::format("{} MiB are recorded, but its pods have {} MiB", account.sums.mib,
                                sums[at.first + i].mib));
      if (account.exceeds_capacity() && !account.over_reported)
        return said("more is reserved than the GPU has");
    }
    if (at.maxima != maxima_of(state.node_state(id).cards))
      return Error(
          Errc::Internal,
          fmt::format("node {}: the recorded maxima of its cards are wrong", state.node_names[id]));
  }
  return check_namespaces(state);
}

}  // namespace gantry::placement
