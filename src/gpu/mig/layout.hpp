// SPDX-License-Identifier: Apache-2.0
// What somebody asks of one GPU: MIG mode off, or these instances.
//
// As words, here and in the description of a simulated machine:
//   off, all-disabled   MIG mode off
//   on, all-enabled     MIG mode on, no instances
//   ITEM,ITEM,...       MIG mode on, exactly these instances
//   ITEM = [COUNTx]PROFILE[@START][=SLICES+SLICES...]
// 2x1g.18gb is two instances. 3g.71gb@4 begins at memory slice 4. 3g.71gb=1+2 has two compute
// instances, with 1 and 2 compute slices; 3g.71gb=0 has none. 3x1c.3g.71gb is three compute
// instances in as few GPU instances as possible; with @START it is one, in a GPU instance of its
// own.
#pragma once

#include "base/core/result.hpp"
#include "gpu/mig/mig_gpu.hpp"
#include "gpu/mig/profile_name.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

inline constexpr unsigned kMaxRequestedInstances = 64;  // of one GPU

struct RequestedInstance {
  ProfileName profile;
  unsigned count = 1;
  std::optional<unsigned> start = std::nullopt;  // memory slice; count is 1 then
  // One compute instance for each number; {0}: none; empty: the one that `profile` names.
  std::vector<unsigned> compute_slices = {};
  bool operator==(const RequestedInstance&) const = default;
};

struct LayoutRequest {
  bool enabled = true;
  std::vector<RequestedInstance> instances;  // empty if not enabled
  bool operator==(const LayoutRequest&) const = default;
};

// How many compute instances there are of each profile; what a configuration file says.
using ProfileCounts = std::map<std::string, unsigned>;

Result<LayoutRequest> parse_layout(std::string_view words);
std::string to_words(const LayoutRequest& request);

// MIG mode on, with these instances. Counts of 0 are left out.
Result<LayoutRequest> request_from_counts(const ProfileCounts& counts);

// The compute instances that the GPU has. A GPU instance without any is not in it.
ProfileCounts current_counts(const MigGpu& gpu);

// The instances that the GPU has, each at its place.
LayoutRequest current_layout(const MigGpu& gpu);

}  // namespace gantry::mig
