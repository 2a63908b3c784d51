// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/cluster.hpp"

#include "cluster/placement/state_internal.hpp"

#include <algorithm>
#include <array>

namespace gantry::placement {
namespace {

podspec::Placement placement_of(const Ground& ground, const Want& want, const Choice& choice) {
  podspec::Placement made;
  for (std::size_t c = 0; c < choice.size(); ++c) {
    auto& container = made.emplace_back();
    container.container = want.ask().containers[c].container;
    for (const auto i : choice[c]) {
      const auto& facts = ground.books[i].facts;
      container.parts.push_back({.uuid = facts.uuid,
                                 .index = facts.index,
                                 .mib = want.mib_of(c, facts.mib, ground.node->unit_mib),
                                 .cores = want.cores_of(c)});
    }
  }
  return made;
}

// Whether the namespace may have it there. What is the same everywhere is known without its cards.
bool within(const Space& space, const Ground& ground, Want& want, const Options& options) {
  if (!want.fixed() || (want.whole() && ground.node->whole_gpus > 0)) {
    const auto found = find(ground, want, options, Answer::Cards);
    return within(space, charges(ground, want, found.choice));
  }
  const auto& load = want.shared_load(0, 0, ground.node->unit_mib);
  return within(space, load.mib * want.gpus(), std::uint64_t{load.cores} * want.gpus());
}

}  // namespace

Cluster::Cluster(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

void Cluster::set_node(const podspec::NodeFacts& facts) {
  const auto id = state_->node(facts.name);
  auto& node = state_->nodes[id];
  node.known = true;
  node.ready = facts.ready;
  node.unit_mib = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(facts.unit_mib, 1, 1024));
  node.whole_gpus = static_cast<std::uint16_t>(std::min(facts.whole_gpus, 1024U));
  node.barred = std::any_of(facts.cards.begin(), facts.cards.end(),
                            [](const podspec::CardFacts& card) { return card.barred; });
  state_->more[id].address = facts.address;
  state_->set_cards(id, facts.cards);
}

void Cluster::remove_node(std::string_view name) {
  const auto id = state_->find_node(name);
  if (!id) return;
  state_->nodes[*id].known = false;
  state_->nodes[*id].whole_gpus = 0;
  state_->nodes[*id].barred = false;
  state_->set_cards(*id, {});
  state_->forget_node(*id);
}

void Cluster::set_pod(const podspec::PodAsk& ask, std::string_view node,
                      const podspec::Placement* placement) {
  const auto id = state_->node(node);
  std::optional<Named> had;
  auto& pod = state_->renew_pod(state_->find_pod(ask.uid), ask, id, had);
  if (placement != nullptr) {
    pod.charges = state_->charges(id, ask, *placement);
  } else if (ask.shared() || state_->nodes[id].whole_gpus == 0) {
    pod.unplaced = std::make_unique<podspec::PodAsk>(ask);
    pod.charges = state_->charges_everywhere(id, ask);
  }
  state_->settle(pod);
  state_->forget(had);
}

void Cluster::remove_pod(std::string_view uid) {
  state_->forget(state_->take_away(uid));
}

void Cluster::set_quota(std::string_view name_space, Quota quota) {
  const auto id = state_->space(name_space);
  state_->spaces[id].quota = quota;
  state_->forget_space(id);
}

Fit Cluster::fit(const podspec::PodAsk& ask, std::string_view node) const {
  std::vector<Fit> fits;
  fit_all(ask, std::span(&node, 1), fits);
  return fits.front();
}

void Cluster::fit_all(const podspec::PodAsk& ask, std::span<const std::string_view> nodes,
                      std::vector<Fit>& fits) const {
  Want want(ask);
  const auto space = state_->space_without(ask.name_space, state_->find_pod(ask.uid));
  const auto aside = state_->aside(ask);
  fits.assign(nodes.size(), {});
  std::array<std::uint64_t, kAhead> hashes{};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % kAhead == 0) state_->expect(nodes.subspan(i), hashes);
    const auto id = state_->node_names.find(nodes[i], hashes[i % kAhead]);
    if (!id) {
      fits[i].refusal = Refusal::NoSharedGpus;
      continue;
    }
    auto ground = state_->ground(*id);
    std::vector<Card> without;
    if (const auto here = state_->of_node(*id, aside); !here.empty()) {
      without = state_->cards_without(*id, here);
      ground = ground.with(without);
    }
    const auto found = find(ground, want, state_->options, Answer::Score);
    fits[i] = {.refusal = found.refusal,
               .barred = ground.node->barred,
               .score = found.score,
               .unit_mib = ground.node->unit_mib};
    if (!space || found.refusal != Refusal::None) continue;
    if (!within(*space, ground, want, state_->options)) fits[i] = {.refusal = Refusal::Quota};
  }
}

// Where it would be once `gone` are.
Result<Cluster::State::Chosen> Cluster::State::choose(const podspec::PodAsk& ask,
                                                      std::string_view node,
                                                      std::span<const PodId> gone) const {
  const auto id = find_node(node);
  const auto refuse = [&](Refusal refusal) {
    Fit fit{.refusal = refusal};
    if (id)
      fit = {.refusal = refusal, .barred = nodes[*id].barred, .unit_mib = nodes[*id].unit_mib};
    return Error(Errc::Busy, sentence(fit, ask, node));
  };
  if (!id) return refuse(Refusal::NoSharedGpus);
  const auto before = find_pod(ask.uid);
  GANTRY_CHECK(may_reserve(before, *id));
  Want want(ask);
  auto there = ground(*id);
  std::vector<Card> without;
  if (const auto here = of_node(*id, gone); !here.empty()) {
    without = cards_without(*id, here);
    there = there.with(without);
  }
  const auto found = find(there, want, options, Answer::Cards);
  if (found.refusal != Refusal::None) return refuse(found.refusal);
  auto taken = placement::charges(there, want, found.choice);
  const auto space = space_without(ask.name_space, before);
  if (space && !within(*space, taken)) return refuse(Refusal::Quota);
  return Chosen{.node = *id,
                .placement = placement_of(there, want, found.choice),
                .charges = std::move(taken)};
}

Result<podspec::Placement> Cluster::reserve(const podspec::PodAsk& ask, std::string_view node) {
  GANTRY_TRY(auto chosen, state_->choose(ask, node, state_->aside(ask)));
  state_->end_keeps_below(
      state_->take(ask, chosen.node, std::move(chosen.charges), State::Hold::Now));
  return std::move(chosen.placement);
}

Result<podspec::Placement> Cluster::keep(const podspec::PodAsk& ask, std::string_view node,
                                         std::span<const std::string> going) {
  auto gone = state_->aside(ask);
  for (const auto& uid : going) {
    const auto pod = state_->find_pod(uid);
    if (pod && std::find(gone.begin(), gone.end(), *pod) == gone.end()) gone.push_back(*pod);
  }
  GANTRY_TRY(auto chosen, state_->choose(ask, node, gone));
  state_->take(ask, chosen.node, std::move(chosen.charges), State::Hold::Later);
  return std::move(chosen.placement);
}

bool Cluster::keeps(std::string_view uid) const {
  const auto found = state_->find_pod(uid);
  return found && state_->pods[*found].kept;
}

void Cluster::release(std::string_view uid) {
  const auto found = state_->find_pod(uid);
  if (!found || !state_->pods[*found].reserved) return;
  auto& pod = state_->pods[*found];
  if (pod.unplaced == nullptr) {
    state_->forget(state_->take_away(uid));
    return;
  }
  state_->unsettle(pod);  // it has a node all the same
  pod.reserved = false;
  pod.charges = state_->charges_everywhere(pod.node, *pod.unplaced);
  state_->settle(pod);
}

std::vector<std::string> Cluster::nodes() const {
  std::vector<std::string> names;
  for (NodeId id = 0; id < state_->nodes.size(); ++id)
    if (state_->nodes[id].known) names.emplace_back(state_->node_names[id]);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace gantry::placement
