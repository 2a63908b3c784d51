// SPDX-License-Identifier: Apache-2.0
// Puts containers of one pod on different cards: a bounded search, containers with the largest
// requests first, and for each container the cheapest card.
#include "cluster/placement/find_internal.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace gantry::placement {
namespace {

constexpr int kMaxSearchSteps = 4096;

class PlacementSearch {
 public:
  PlacementSearch(const NodeState& node_state, const PodDemand& demand, const Policies& rules,
                  CardMask among)
      : node_state_(node_state),
        demand_(demand),
        rules_(rules),
        among_(among),
        on_(node_state.cards.size(), 0) {
    choice_.resize(demand.containers());
    order_.resize(demand.containers());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Containers that keep running come first: init containers then use the cards that they pass
    // on.
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      if (demand.init(a) != demand.init(b)) return demand.init(b);
      return size_of(a) > size_of(b);
    });
  }

  std::optional<CardChoice> run() {
    if (!place(0, 0)) return std::nullopt;
    return std::move(choice_);
  }

 private:
  std::uint64_t size_of(std::size_t container) const {
    const auto card_mib = node_state_.cards.empty() ? 0 : node_state_.cards.front().total_mib;
    return demand_.gpus_of(container) *
               demand_.mib_of(container, card_mib, node_state_.node->unit_mib) +
           (demand_.cores_of(container) >= kWholeCardCores ? kMaxMib : 0);
  }

  struct Option {
    std::uint64_t cost = 0;
    std::uint16_t card = 0;
  };

  std::vector<Option> options(std::size_t container) const {
    std::vector<Option> found;
    const auto& taken = choice_[container];
    for (CardMask rest = among_; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::uint16_t>(std::countr_zero(rest));
      if (std::find(taken.begin(), taken.end(), i) != taken.end()) continue;
      const auto& card = node_state_.cards[i];
      const auto load = demand_.load(on_[i] | ContainerMask{1} << container, card.total_mib,
                                     node_state_.node->unit_mib);
      if (!fits(card, load)) continue;
      // A card that the pod already uses costs nothing more.
      const auto extra = on_[i] != 0 && demand_.init(container) ? 0 : cost(card, load, rules_);
      found.push_back({.cost = extra, .card = i});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Option& a, const Option& b) { return a.cost < b.cost; });
    return found;
  }

  bool place(std::size_t at, std::uint32_t part) {
    if (at == order_.size()) return true;
    const auto container = order_[at];
    if (part == demand_.gpus_of(container)) return place(at + 1, 0);
    for (const auto& option : options(container)) {
      if (++steps_ > kMaxSearchSteps) return false;
      const auto before = on_[option.card];
      on_[option.card] |= ContainerMask{1} << container;
      choice_[container].push_back(option.card);
      if (place(at, part + 1)) return true;
      choice_[container].pop_back();
      on_[option.card] = before;
    }
    return false;
  }

  const NodeState& node_state_;
  const PodDemand& demand_;
  Policies rules_;
  CardMask among_;
  std::vector<ContainerMask> on_;  // by card
  CardChoice choice_;
  std::vector<std::size_t> order_;
  int steps_ = 0;
};

}  // namespace

std::optional<CardChoice> place_separately(const NodeState& node_state, const PodDemand& demand,
                                           const Policies& rules, CardMask among) {
  return PlacementSearch(node_state, demand, rules, among).run();
}

}  // namespace gantry::placement
