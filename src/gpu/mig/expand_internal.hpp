// SPDX-License-Identifier: Apache-2.0
// Turns a request into GPU instances with their compute instances.
#pragma once

#include "gpu/mig/profile_table_internal.hpp"

#include <vector>

namespace gantry::mig {

inline constexpr std::size_t kMaxAlternatives = 64;

// The ways to build the request, best first; at least one. They differ if compute instances that
// are smaller than their GPU instance can be divided among GPU instances in several ways. Invalid,
// with the reason, if the GPU does not have such profiles or places.
Result<std::vector<InstanceKinds>> expand(const ProfileTable& table, const LayoutRequest& request);

// The request that stands for these instances.
LayoutRequest to_request(const ProfileTable& table, const InstanceKinds& kinds);

// The groups to find places for; `kinds` are sorted, and each group is one kind.
struct KindGroup {
  InstanceKind kind;
  unsigned count = 0;
};
std::vector<KindGroup> group_kinds(InstanceKinds kinds);

// Where an instance of this kind can be.
std::vector<Placement> possible_places(const ProfileTable& table, const InstanceKind& kind);

// Whether one GPU instance of this profile can have these compute instances at once.
bool compute_fits(const ProfileTable& table, std::size_t profile,
                  const std::vector<std::size_t>& compute);

}  // namespace gantry::mig
