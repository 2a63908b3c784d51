// SPDX-License-Identifier: Apache-2.0
// Finds places for instances so that no two overlap: GPU instances on memory slices, compute
// instances on compute slices. It tries every combination, so what it returns is the best one. A
// GPU has at most 8 slices: 7 instances of 3 kinds have at most 140 combinations. The number of
// steps is limited, so that a table that is not one of a GPU cannot keep it busy.
#pragma once

#include "gpu/mig/profile_table_internal.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace gantry::mig {

inline constexpr unsigned kMaxSearchSteps = 50'000;

// What stays if an instance gets a place. Compared member by member.
struct Gain {
  unsigned held = 0;                              // compute instances that must not be destroyed
  unsigned compute = 0;                           // compute instances
  unsigned gpu = 0;                               // GPU instances
  auto operator<=>(const Gain&) const = default;  // NOLINT(modernize-use-nullptr)
  Gain operator+(const Gain& other) const {
    return {held + other.held, compute + other.compute, gpu + other.gpu};
  }
};

struct PlaceOption {
  Placement place;
  Gain gain;
};
using PlaceOptions = std::vector<PlaceOption>;  // by start

struct PlaceGroup {  // instances of one kind
  unsigned count = 0;
  PlaceOptions options;
};

struct PlaceChoice {
  std::vector<std::vector<PlaceOption>> places;  // of each group, by start
  Gain gain;
};

// How good the slices are that stay free; greater is better.
using RoomRule = std::function<std::vector<unsigned>(SliceMask taken)>;

// The greatest gain, then the best room, then the places with the lowest starts, first group first.
// nullopt if there is no combination without overlap.
std::optional<PlaceChoice> find_places(const std::vector<PlaceGroup>& groups, const RoomRule& room);

// Whether there is a combination without overlap.
bool have_places(const std::vector<PlaceGroup>& groups);

}  // namespace gantry::mig
