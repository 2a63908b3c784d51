// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/cluster.hpp"

#include "cluster/placement/state_internal.hpp"

#include <algorithm>
#include <array>

namespace gantry::placement {
namespace {

podspec::Placement placement_of(const NodeState& node_state, const PodDemand& demand,
                                const CardChoice& choice) {
  podspec::Placement made;
  for (std::size_t c = 0; c < choice.size(); ++c) {
    auto& container = made.emplace_back();
    container.container = demand.ask().containers[c].container;
    for (const auto i : choice[c]) {
      const auto& facts = node_state.accounts[i].facts;
      container.parts.push_back({.uuid = facts.uuid,
                                 .index = facts.index,
                                 .mib = demand.mib_of(c, facts.mib, node_state.node->unit_mib),
                                 .cores = demand.cores_of(c)});
    }
  }
  return made;
}

// Whether the quota of the namespace allows it there. Amounts that do not depend on the card are
// known without looking at the cards.
bool allowed_by_quota(const NamespaceRecord& space, const NodeState& node_state, PodDemand& demand,
                      const Options& options) {
  if (!demand.fixed() || (demand.whole() && node_state.node->whole_gpus > 0)) {
    const auto found = find(node_state, demand, options, FindDetail::CardMask);
    return within(space, charges(node_state, demand, found.choice));
  }
  const auto& load = demand.shared_load(0, 0, node_state.node->unit_mib);
  return within(space, load.mib * demand.gpus(), std::uint64_t{load.cores} * demand.gpus());
}

}  // namespace

Cluster::Cluster(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

void Cluster::set_node(const podspec::NodeInfo& facts) {
  const auto id = state_->node(facts.name);
  auto& node = state_->nodes[id];
  node.known = true;
  node.ready = facts.ready;
  node.unit_mib = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(facts.unit_mib, 1, 1024));
  node.whole_gpus = static_cast<std::uint16_t>(std::min(facts.whole_gpus, 1024U));
  node.marked_unhealthy =
      std::any_of(facts.cards.begin(), facts.cards.end(),
                  [](const podspec::CardInfo& card) { return card.marked_unhealthy; });
  state_->more[id].address = facts.address;
  state_->set_cards(id, facts.cards);
}

void Cluster::remove_node(std::string_view name) {
  const auto id = state_->find_node(name);
  if (!id) return;
  state_->nodes[*id].known = false;
  state_->nodes[*id].whole_gpus = 0;
  state_->nodes[*id].marked_unhealthy = false;
  state_->set_cards(*id, {});
  state_->forget_node(*id);
}

void Cluster::set_pod(const podspec::PodRequest& ask, std::string_view node,
                      const podspec::Placement* placement) {
  const auto id = state_->node(node);
  std::optional<RecordOwners> had;
  auto& pod = state_->replace_pod(state_->find_pod(ask.pod.uid), ask, id, had);
  if (placement != nullptr) {
    pod.charges = state_->charges(id, ask, *placement);
  } else if (ask.shared() || state_->nodes[id].whole_gpus == 0) {
    pod.unplaced = std::make_unique<podspec::PodRequest>(ask);
    pod.charges = state_->charges_for_every_card(id, ask);
  }
  state_->add_charges(pod);
  state_->forget(had);
}

void Cluster::remove_pod(std::string_view uid) {
  state_->forget(state_->remove_record(uid));
}

void Cluster::set_quota(std::string_view name_space, Quota quota) {
  const auto id = state_->space(name_space);
  state_->namespaces[id].quota = quota;
  state_->forget_namespace(id);
}

Fit Cluster::fit(const podspec::PodRequest& ask, std::string_view node) const {
  std::vector<Fit> fits;
  fit_all(ask, std::span(&node, 1), fits);
  return fits.front();
}

void Cluster::fit_all(const podspec::PodRequest& ask, std::span<const std::string_view> nodes,
                      std::vector<Fit>& fits) const {
  PodDemand demand(ask);
  const auto space = state_->namespace_without(ask.pod.name_space, state_->find_pod(ask.pod.uid));
  const auto pods_to_ignore = state_->pods_to_ignore(ask);
  fits.assign(nodes.size(), {});
  std::array<std::uint64_t, kPrefetchNodes> hashes{};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % kPrefetchNodes == 0) state_->prefetch(nodes.subspan(i), hashes);
    const auto id = state_->node_names.find(nodes[i], hashes[i % kPrefetchNodes]);
    if (!id) {
      fits[i].refusal = Refusal::NoSharedGpus;
      continue;
    }
    auto node_state = state_->node_state(*id);
    std::vector<Card> without;
    if (const auto here = state_->of_node(*id, pods_to_ignore); !here.empty()) {
      without = state_->cards_without(*id, here);
      node_state = node_state.with(without);
    }
    const auto found = find(node_state, demand, state_->options, FindDetail::Score);
    fits[i] = {.refusal = found.refusal,
               .marked_unhealthy = node_state.node->marked_unhealthy,
               .score = found.score,
               .unit_mib = node_state.node->unit_mib};
    if (!space || found.refusal != Refusal::None) continue;
    if (!allowed_by_quota(*space, node_state, demand, state_->options))
      fits[i] = {.refusal = Refusal::Quota};
  }
}

// The cards that it would get if `gone` had ended.
Result<Cluster::State::CardDecision> Cluster::State::choose(const podspec::PodRequest& ask,
                                                            std::string_view node,
                                                            std::span<const PodId> gone) const {
  const auto id = find_node(node);
  const auto refuse = [&](Refusal refusal) {
    Fit fit{.refusal = refusal};
    if (id)
      fit = {.refusal = refusal,
             .marked_unhealthy = nodes[*id].marked_unhealthy,
             .unit_mib = nodes[*id].unit_mib};
    return Error(Errc::Busy, describe(fit, ask, node));
  };
  if (!id) return refuse(Refusal::NoSharedGpus);
  const auto before = find_pod(ask.pod.uid);
  GANTRY_CHECK(may_reserve(before, *id));
  PodDemand demand(ask);
  auto there = node_state(*id);
  std::vector<Card> without;
  if (const auto here = of_node(*id, gone); !here.empty()) {
    without = cards_without(*id, here);
    there = there.with(without);
  }
  const auto found = find(there, demand, options, FindDetail::CardMask);
  if (found.refusal != Refusal::None) return refuse(found.refusal);
  auto taken = placement::charges(there, demand, found.choice);
  const auto space = namespace_without(ask.pod.name_space, before);
  if (space && !within(*space, taken)) return refuse(Refusal::Quota);
  return CardDecision{.node = *id,
                      .placement = placement_of(there, demand, found.choice),
                      .charges = std::move(taken)};
}

Result<podspec::Placement> Cluster::reserve(const podspec::PodRequest& ask, std::string_view node) {
  GANTRY_TRY(auto chosen, state_->choose(ask, node, state_->pods_to_ignore(ask)));
  state_->end_nominations_below(
      state_->take(ask, chosen.node, std::move(chosen.charges), State::ReserveMode::Now));
  return std::move(chosen.placement);
}

Result<podspec::Placement> Cluster::add_nomination(const podspec::PodRequest& ask,
                                                   std::string_view node,
                                                   std::span<const std::string> going) {
  auto gone = state_->pods_to_ignore(ask);
  for (const auto& uid : going) {
    const auto pod = state_->find_pod(uid);
    if (pod && std::find(gone.begin(), gone.end(), *pod) == gone.end()) gone.push_back(*pod);
  }
  GANTRY_TRY(auto chosen, state_->choose(ask, node, gone));
  state_->take(ask, chosen.node, std::move(chosen.charges), State::ReserveMode::Later);
  return std::move(chosen.placement);
}

bool Cluster::is_nominated(std::string_view uid) const {
  const auto found = state_->find_pod(uid);
  return found && state_->pods[*found].nominated;
}

void Cluster::release(std::string_view uid) {
  const auto found = state_->find_pod(uid);
  if (!found || !state_->pods[*found].reserved) return;
  auto& pod = state_->pods[*found];
  if (pod.unplaced == nullptr) {
    state_->forget(state_->remove_record(uid));
    return;
  }
  state_->remove_charges(pod);  // it still has a node
  pod.reserved = false;
  pod.charges = state_->charges_for_every_card(pod.node, *pod.unplaced);
  state_->add_charges(pod);
}

std::vector<std::string> Cluster::nodes() const {
  std::vector<std::string> names;
  for (NodeId id = 0; id < state_->nodes.size(); ++id)
    if (state_->nodes[id].known) names.emplace_back(state_->node_names[id]);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace gantry::placement
