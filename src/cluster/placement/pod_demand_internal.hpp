// SPDX-License-Identifier: Apache-2.0
// A pod's request, prepared for comparison with many cards: what its containers take of one card
// during the life of the pod, depending on which of them are on it.
#pragma once

#include "cluster/podspec/request.hpp"

#include <cstdint>
#include <vector>

namespace gantry::placement {

// Sums of such values do not overflow.
inline constexpr std::uint64_t kMaxMib = std::uint64_t{1} << 40;
inline constexpr std::uint32_t kWholeCardCores = 100;

// The memory and time that are taken on one card.
struct CardLoad {
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;
  std::uint32_t slots = 0;
  bool alone = false;       // a container needs the card alone
  bool impossible = false;  // ... and another container of the pod would run there at the same time
  bool operator==(const CardLoad&) const = default;
};

using ContainerMask = std::uint64_t;  // a set of containers, by index in PodRequest.containers
inline constexpr std::size_t kMaxPlacedContainers = 64;  // bits of a ContainerMask
inline constexpr std::uint32_t kMaxGpusPerNode = 64;     // upper bound

class PodDemand {
 public:
  explicit PodDemand(const podspec::PodRequest& ask);

  const podspec::PodRequest& ask() const { return *ask_; }
  bool exceeds_limits() const { return exceeds_limits_; }  // more GPUs or containers than supported
  std::uint32_t gpus() const { return gpus_; }  // number of different cards that are enough
  bool uniform() const { return uniform_; }     // the same amount of each card
  bool depends_on_card_size() const { return percent_; }  // amounts are percentages of the card
  bool has_several_containers() const { return containers_.size() > 1; }
  bool whole() const { return whole_; }                      // whole GPUs also satisfy it
  bool has_card_filter() const { return has_card_filter_; }  // affinity to models or UUIDs
  bool plain() const { return plain_; }                      // uniform, and any card is possible
  // One container with fixed amounts: it takes the same of any card.
  bool fixed() const { return containers_.size() == 1 && !percent_ && gpus_ > 0; }
  ContainerMask all() const { return all_; }
  std::uint32_t gpus_of(std::size_t container) const { return containers_[container].gpus; }
  bool init(std::size_t container) const {
    return containers_[container].phase == model::ContainerPhase::Init;
  }
  std::size_t containers() const { return containers_.size(); }

  std::uint64_t mib_of(std::size_t container, std::uint64_t card_mib, std::uint64_t unit_mib) const;
  std::uint32_t cores_of(std::size_t container) const { return containers_[container].cores; }

  // The maximum that these containers take at once if they are on one card.
  CardLoad load(ContainerMask on_it, std::uint64_t card_mib, std::uint64_t unit_mib) const;

  // If all containers use the same cards, each the first ones up to its number: what the card at
  // `place` must provide.
  const CardLoad& shared_load(std::uint32_t place, std::uint64_t card_mib, std::uint64_t unit_mib) {
    return known(card_mib, unit_mib).shared[place];
  }
  // The demand of one container on a card, without the other containers.
  const CardLoad& own_load(std::size_t container, std::uint64_t card_mib, std::uint64_t unit_mib) {
    return known(card_mib, unit_mib).own[container];
  }

 private:
  struct ContainerDemand {
    model::ContainerPhase phase = model::ContainerPhase::Main;
    std::uint32_t gpus = 1;
    std::uint32_t cores = 0;
    podspec::Amount memory;
  };
  struct CachedLoads {
    std::uint64_t card_mib = 0;
    std::uint64_t unit_mib = 0;
    bool matches_size(std::uint64_t card, std::uint64_t unit) const {
      return card_mib == card && unit_mib == unit;
    }
    std::vector<CardLoad> shared;  // by index of the card
    std::vector<CardLoad> own;     // by container
  };
  // Computed once for each size of card, because a filter asks for every card of the cluster.
  const CachedLoads& known(std::uint64_t card_mib, std::uint64_t unit_mib) {
    if (!percent_) card_mib = 0;
    if (last_ < cached_loads_.size() && cached_loads_[last_].matches_size(card_mib, unit_mib))
      return cached_loads_[last_];
    return find_loads(card_mib, unit_mib);
  }
  const CachedLoads& find_loads(std::uint64_t card_mib, std::uint64_t unit_mib);
  CachedLoads compute_loads(std::uint64_t card_mib, std::uint64_t unit_mib) const;

  const podspec::PodRequest* ask_;
  std::vector<ContainerDemand> containers_;
  std::vector<CachedLoads> cached_loads_;
  std::size_t last_ = 0;
  std::uint32_t gpus_ = 0;
  ContainerMask all_ = 0;
  bool uniform_ = true;
  bool percent_ = false;
  bool has_card_filter_ = false;
  bool plain_ = false;
  bool whole_ = false;
  bool exceeds_limits_ = false;
};

}  // namespace gantry::placement
