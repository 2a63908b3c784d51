// SPDX-License-Identifier: Apache-2.0
// Decides what to keep, destroy and create so that a GPU gets the requested instances. It only
// computes: nothing is destroyed before the whole layout has places.
//
// An instance never moves. It is kept if the new layout has one of its profile at its place. Among
// all layouts that fit, the plan keeps
//   1. the held compute instances: if one of them cannot stay, the request is refused;
//   2. as many compute instances as possible, then as many GPU instances;
//   3. room for later: as many more instances as possible of the largest profile, then of the next
//      smaller one, and so on;
//   4. low slices.
// "1c.3g.71gb" without a place goes into as few GPU instances as possible, unless more of them keep
// a held instance; if the GPU has exactly the requested instances already, nothing changes.
#pragma once

#include "gpu/mig/layout.hpp"
#include "gpu/mig/mig_gpu.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace gantry::mig {

struct ComputeCreation {
  std::string profile;
  unsigned profile_id = 0;  // NVML's
  Placement place;
  bool operator==(const ComputeCreation&) const = default;
};

struct GpuInstanceCreation {
  std::string profile;
  unsigned profile_id = 0;  // NVML's
  Placement place;
  std::vector<ComputeCreation> compute;
  bool operator==(const GpuInstanceCreation&) const = default;
};

struct KeptGpuInstance {
  unsigned id = 0;
  std::string profile;
  Placement place;
  std::vector<ComputeInstance> keep;
  std::vector<ComputeInstance> destroy;
  std::vector<ComputeCreation> create;
  bool operator==(const KeptGpuInstance&) const = default;
};

struct LayoutPlan {
  model::MigMode mode = model::MigMode::Enabled;  // wanted
  bool changes_mode = false;
  std::vector<KeptGpuInstance> keep;        // by place
  std::vector<GpuInstance> destroy;         // by place, with their compute instances
  std::vector<GpuInstanceCreation> create;  // by place
  bool changes_instances() const;
  bool changes_nothing() const { return !changes_mode && !changes_instances(); }
  bool operator==(const LayoutPlan&) const = default;
};

struct LayoutRefusal {
  std::string reason;  // "3g.71gb three times does not fit: the GPU has room for two"
  std::vector<ComputeInstance> held;     // those that would be destroyed, if that is the reason
  std::optional<LayoutRequest> nearest;  // that fits; without regard to what is held
  Error to_error(const MigGpu& gpu) const;
};

using LayoutDecision = std::variant<LayoutPlan, LayoutRefusal>;

// `held`: compute instances that somebody uses.
LayoutDecision solve(const MigGpu& gpu, const LayoutRequest& request,
                     std::span<const model::GpuUuid> held = {});

// Without the nearest layout, which takes longer than the rest.
LayoutDecision solve_quickly(const MigGpu& gpu, const LayoutRequest& request,
                             std::span<const model::GpuUuid> held = {});

// The layout that fits and differs least from the request, which does not: the fewest instances
// dropped or replaced by a smaller one; among those the fewest dropped, then the most compute
// slices, then the most memory; then the instances that come first in the request stay. A smaller
// one has no more slices, no more memory slices and no attribute that the requested one has not.
// nullopt if nothing of the request fits.
std::optional<LayoutRequest> nearest_layout(const MigGpu& gpu, const LayoutRequest& request);

// The GPU as it is after the plan. New instances have no ids and no UUIDs.
MigGpu after(const MigGpu& gpu, const LayoutPlan& plan);

}  // namespace gantry::mig
