// SPDX-License-Identifier: Apache-2.0
// A pod's ask made ready to be held against many cards: what containers take of one card while the
// pod lives, by which of them are on it.
#pragma once

#include "cluster/podspec/ask.hpp"

#include <cstdint>
#include <vector>

namespace gantry::placement {

inline constexpr std::uint64_t kMostMib = std::uint64_t{1} << 40;  // sums of these do not wrap
inline constexpr std::uint32_t kAllCores = 100;

// What is taken of one card.
struct Load {
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;
  std::uint32_t slots = 0;
  bool alone = false;       // some container wants the card for itself
  bool impossible = false;  // ... and another one of the pod would run there at the same time
  bool operator==(const Load&) const = default;
};

using Containers = std::uint64_t;  // a set of them, by place in PodAsk.containers
inline constexpr std::size_t kMostContainers = 64;
inline constexpr std::uint32_t kMostGpus = 64;  // a node has fewer

class Want {
 public:
  explicit Want(const podspec::PodAsk& ask);

  const podspec::PodAsk& ask() const { return *ask_; }
  bool too_big() const { return too_big_; }     // more GPUs or containers than there can be
  std::uint32_t gpus() const { return gpus_; }  // different cards that are enough
  bool uniform() const { return uniform_; }     // each of them is asked for the same
  bool by_card() const { return percent_; }     // amounts depend on the size of the card
  bool several() const { return containers_.size() > 1; }
  bool whole() const { return whole_; }  // whole GPUs serve it as well
  bool picky() const { return picky_; }  // wishes for models or UUIDs
  bool plain() const { return plain_; }  // uniform, and any card will do
  // One container with amounts of its own: it takes the same of whatever cards it is given.
  bool fixed() const { return containers_.size() == 1 && !percent_ && gpus_ > 0; }
  Containers all() const { return all_; }
  std::uint32_t gpus_of(std::size_t container) const { return containers_[container].gpus; }
  bool init(std::size_t container) const {
    return containers_[container].phase == podspec::Phase::Init;
  }
  std::size_t containers() const { return containers_.size(); }

  std::uint64_t mib_of(std::size_t container, std::uint64_t card_mib, std::uint64_t unit_mib) const;
  std::uint32_t cores_of(std::size_t container) const { return containers_[container].cores; }

  // The most that these containers take at once, when they are on one card.
  Load load(Containers on_it, std::uint64_t card_mib, std::uint64_t unit_mib) const;

  // Where all containers use the same cards, each as many of the first as it asks: what the card
  // at `place` has to give.
  const Load& shared_load(std::uint32_t place, std::uint64_t card_mib, std::uint64_t unit_mib) {
    return known(card_mib, unit_mib).shared[place];
  }
  // What a container has to be given that is on a card without the others.
  const Load& own_load(std::size_t container, std::uint64_t card_mib, std::uint64_t unit_mib) {
    return known(card_mib, unit_mib).own[container];
  }

 private:
  struct One {
    podspec::Phase phase = podspec::Phase::Main;
    std::uint32_t gpus = 1;
    std::uint32_t cores = 0;
    podspec::Amount memory;
  };
  struct Known {
    std::uint64_t card_mib = 0;
    std::uint64_t unit_mib = 0;
    bool is_it(std::uint64_t card, std::uint64_t unit) const {
      return card_mib == card && unit_mib == unit;
    }
    std::vector<Load> shared;  // by place
    std::vector<Load> own;     // by container
  };
  // Worked out once for each size of card: a filter asks for every card of the cluster.
  const Known& known(std::uint64_t card_mib, std::uint64_t unit_mib) {
    if (!percent_) card_mib = 0;
    if (last_ < known_.size() && known_[last_].is_it(card_mib, unit_mib)) return known_[last_];
    return look_up(card_mib, unit_mib);
  }
  const Known& look_up(std::uint64_t card_mib, std::uint64_t unit_mib);
  Known worked_out(std::uint64_t card_mib, std::uint64_t unit_mib) const;

  const podspec::PodAsk* ask_;
  std::vector<One> containers_;
  std::vector<Known> known_;
  std::size_t last_ = 0;
  std::uint32_t gpus_ = 0;
  Containers all_ = 0;
  bool uniform_ = true;
  bool percent_ = false;
  bool picky_ = false;
  bool plain_ = false;
  bool whole_ = false;
  bool too_big_ = false;
};

}  // namespace gantry::placement
