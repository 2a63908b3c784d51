// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/placement.hpp"

#include <algorithm>
#include <limits>

namespace gantry::podspec {
namespace {

template <class Number>
void add(Number& sum, Number more) {
  sum = more > std::numeric_limits<Number>::max() - sum ? std::numeric_limits<Number>::max()
                                                        : static_cast<Number>(sum + more);
}

void add(Charge& sum, const Charge& more) {
  add(sum.mib, more.mib);
  add(sum.cores, more.cores);
  add(sum.slots, more.slots);
}

void raise(Charge& most, const Charge& other) {
  most.mib = std::max(most.mib, other.mib);
  most.cores = std::max(most.cores, other.cores);
  most.slots = std::max(most.slots, other.slots);
}

// What is on one card at the same time, in the order in which the kubelet starts containers: init
// containers one after the other, each together with the earlier sidecars; then all containers that
// keep running.
struct CardPeak {
  Charge staying;
  Charge peak;

  void start(const model::GpuShare& part, model::ContainerPhase phase) {
    const Charge charge{.mib = part.mib, .cores = part.cores, .slots = 1};
    if (phase == model::ContainerPhase::Init) {
      Charge together = staying;
      add(together, charge);
      raise(peak, together);
      return;
    }
    add(staying, charge);
    raise(peak, staying);
  }
};

}  // namespace

std::vector<Charge> charges(const PodRequest& ask, const Placement& placement) {
  std::map<model::GpuUuid, CardPeak> cards;
  const auto start = [&](const ContainerPlacement& placed, model::ContainerPhase phase) {
    for (const auto& part : placed.parts) cards[part.uuid].start(part, phase);
  };
  const auto asked = [&](const ContainerPlacement& placed) {
    return std::find_if(
        ask.containers.begin(), ask.containers.end(),
        [&](const ContainerRequest& container) { return container.container == placed.container; });
  };
  // In the pod's order, not the placement's. A container that the request does not have counts as
  // one that keeps running.
  for (const auto& container : ask.containers) {
    for (const auto& placed : placement) {
      if (placed.container == container.container) start(placed, container.phase);
    }
  }
  for (const auto& placed : placement) {
    if (asked(placed) == ask.containers.end()) start(placed, model::ContainerPhase::Main);
  }
  std::vector<Charge> sums;
  for (auto& [uuid, card] : cards) {
    sums.push_back(card.peak);
    sums.back().uuid = uuid;
  }
  return sums;
}

}  // namespace gantry::podspec
