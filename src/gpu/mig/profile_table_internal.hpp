// SPDX-License-Identifier: Apache-2.0
// The profiles of one GPU with their parsed names, and the rules that hold whatever the places.
#pragma once

#include "gpu/mig/layout.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::mig {

// A set of slices: bit i is slice i.
using SliceMask = std::uint64_t;
inline constexpr unsigned kMaxSlices = 64;

SliceMask mask_of(const Placement& place);

struct ProfileTable {
  explicit ProfileTable(const MigGpu& described);

  const MigGpu& gpu;
  std::vector<ProfileName> names;                    // of gpu.profiles
  std::vector<std::vector<ComputeProfile>> compute;  // of each GPU profile
  unsigned compute_slices = 0;                       // of the whole GPU: 7
  unsigned memory_slices = 0;                        // 8

  std::optional<std::size_t> find(const ProfileName& gpu_instance) const;
  std::optional<std::size_t> find_compute(std::size_t profile, unsigned slices) const;
  unsigned size(std::size_t profile) const;  // memory slices of an instance; 0 without places
};

// Instances that are equal, apart from a chosen place.
struct InstanceKind {
  std::size_t profile = 0;  // in gpu.profiles
  std::optional<unsigned> start = std::nullopt;
  std::vector<std::size_t> compute = {};  // in table.compute[profile]; sorted, large ones first
  auto operator<=>(const InstanceKind&) const = default;  // NOLINT(modernize-use-nullptr)
};
using InstanceKinds = std::vector<InstanceKind>;

// Why these instances cannot be on the GPU together, wherever they are; "" if they may fit.
std::string broken_rule(const ProfileTable& table, const InstanceKinds& kinds);
// The same without the words, for searches.
bool follows_rules(const ProfileTable& table, const std::vector<unsigned>& counts);

// How many instances of each profile could still be added, large profiles first. Greater is better.
std::vector<unsigned> room_left(const ProfileTable& table, const std::vector<unsigned>& counts,
                                SliceMask taken);

std::vector<unsigned> count_profiles(const ProfileTable& table, const InstanceKinds& kinds);

// "two", "11"
std::string number_word(unsigned number);
// "two instances"
std::string counted(unsigned number, std::string_view thing);

}  // namespace gantry::mig
