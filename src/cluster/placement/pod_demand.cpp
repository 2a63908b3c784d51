// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/pod_demand_internal.hpp"

#include <algorithm>

namespace gantry::placement {
namespace {

constexpr std::size_t kMaxCachedCardSizes = 64;  // sizes of cards that are cached

void add_load(CardLoad& to, std::uint64_t mib, std::uint32_t cores) {
  const bool alone = cores >= kWholeCardCores;
  to.impossible = to.impossible || (to.slots > 0 && (alone || to.alone));
  to.alone = to.alone || alone;
  to.mib = std::min(to.mib + mib, kMaxMib);
  to.cores += cores;
  ++to.slots;
}

void raise(CardLoad& peak, const CardLoad& to) {
  peak.mib = std::max(peak.mib, to.mib);
  peak.cores = std::max(peak.cores, to.cores);
  peak.slots = std::max(peak.slots, to.slots);
  peak.alone = peak.alone || to.alone;
  peak.impossible = peak.impossible || to.impossible;
}

}  // namespace

PodDemand::PodDemand(const podspec::PodRequest& ask) : ask_(&ask), whole_(!ask.shared()) {
  const auto& affinity = ask.affinity;
  has_card_filter_ = !affinity.types.empty() || !affinity.excluded_types.empty() ||
                     !affinity.uuids.empty() || !affinity.excluded_uuids.empty();
  exceeds_limits_ = ask.containers.size() > kMaxPlacedContainers;
  for (const auto& asked : ask.containers) {
    if (exceeds_limits_) return;
    exceeds_limits_ = asked.gpus > kMaxGpusPerNode;
    uniform_ = uniform_ && (gpus_ == 0 || asked.gpus == 0 || asked.gpus == gpus_);
    gpus_ = std::max(gpus_, asked.gpus);
    percent_ = percent_ || asked.memory.kind == podspec::Amount::Kind::Percent;
    containers_.push_back({.phase = asked.phase,
                           .gpus = asked.gpus,
                           .cores = std::min(asked.cores, kWholeCardCores),
                           .memory = asked.memory});
  }
  plain_ = uniform_ && !has_card_filter_ && affinity.topology != podspec::TopologyPolicy::Numa &&
           gpus_ > 0;
  const auto count = containers_.size();
  all_ = count == kMaxPlacedContainers ? ~ContainerMask{0} : (ContainerMask{1} << count) - 1;
}

std::uint64_t PodDemand::mib_of(std::size_t container, std::uint64_t card_mib,
                                std::uint64_t unit_mib) const {
  const auto& memory = containers_[container].memory;
  if (memory.value > kMaxMib) return kMaxMib;
  return std::min(memory.on(card_mib, std::min<std::uint64_t>(unit_mib, 1024)), kMaxMib);
}

CardLoad PodDemand::load(ContainerMask on_it, std::uint64_t card_mib,
                         std::uint64_t unit_mib) const {
  CardLoad peak;
  CardLoad running;  // sidecars so far, then the other containers in addition
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    if ((on_it >> i & 1) == 0) continue;
    const auto mib = mib_of(i, card_mib, unit_mib);
    if (containers_[i].phase != model::ContainerPhase::Init) {
      add_load(running, mib, containers_[i].cores);
      continue;
    }
    CardLoad meanwhile = running;
    add_load(meanwhile, mib, containers_[i].cores);
    raise(peak, meanwhile);
  }
  raise(peak, running);
  return peak;
}

const PodDemand::CachedLoads& PodDemand::find_loads(std::uint64_t card_mib,
                                                    std::uint64_t unit_mib) {
  const auto found = std::find_if(
      cached_loads_.begin(), cached_loads_.end(),
      [&](const CachedLoads& known) { return known.matches_size(card_mib, unit_mib); });
  last_ = static_cast<std::size_t>(found - cached_loads_.begin());
  if (found == cached_loads_.end()) {
    if (cached_loads_.size() >= kMaxCachedCardSizes) cached_loads_.clear();
    last_ = cached_loads_.size();
    cached_loads_.push_back(compute_loads(card_mib, unit_mib));
  }
  return cached_loads_[last_];
}

PodDemand::CachedLoads PodDemand::compute_loads(std::uint64_t card_mib,
                                                std::uint64_t unit_mib) const {
  CachedLoads made{.card_mib = card_mib, .unit_mib = unit_mib};
  for (std::uint32_t i = 0; i < gpus_; ++i) {
    ContainerMask on_it = 0;
    for (std::size_t c = 0; c < containers_.size(); ++c)
      if (containers_[c].gpus > i) on_it |= ContainerMask{1} << c;
    made.shared.push_back(load(on_it, card_mib, unit_mib));
  }
  if (!has_several_containers()) return made;
  for (std::size_t c = 0; c < containers_.size(); ++c)
    made.own.push_back(load(ContainerMask{1} << c, card_mib, unit_mib));
  return made;
}

}  // namespace gantry::placement
