// SPDX-License-Identifier: Apache-2.0
// From the instances that a GPU has to those that it should have, as a list of steps. Pure.
#pragma once

#include "gpu/mig/mig_gpu.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig_change {

struct LayoutCompute {
  std::string profile;
  mig::Placement place;  // of size 0: the driver chooses
  bool operator==(const LayoutCompute&) const = default;
};

struct LayoutInstance {
  std::string profile;
  mig::Placement place;
  std::vector<LayoutCompute> compute;  // in the order of their creation
  bool operator==(const LayoutInstance&) const = default;
};

// Exactly what one GPU should have.
struct Layout {
  bool enabled = false;                   // the MIG mode
  std::vector<LayoutInstance> instances;  // by place
  bool operator==(const Layout&) const = default;
};

// Compute instances are listed by id: created in this order they get these ids and UUIDs again.
Layout layout_of(const mig::MigGpu& gpu);
std::string describe(const Layout& layout);  // "3g.71gb at 0, 1g.18gb at 4", "no MIG"

struct Step {
  enum class Kind : std::uint8_t {
    DestroyCompute,
    DestroyInstance,
    SetMode,
    CreateInstance,
    CreateCompute
  };
  Kind kind = Kind::SetMode;
  bool enable = false;        // SetMode
  unsigned gpu_instance = 0;  // Destroy...
  unsigned compute_instance = 0;
  std::string profile;   // of the instance; CreateCompute, DestroyCompute: of the compute instance
  mig::Placement place;  // of the GPU instance
  mig::Placement compute;  // CreateCompute: of the compute instance
  model::GpuUuid uuid;     // DestroyCompute
  bool operator==(const Step&) const = default;
};
using StepKind = Step::Kind;
std::string describe(const Step& step);  // "create 3g.71gb at 4"

// What is there and wanted stays: GPU instances of the same profile at the same place, and the
// compute instances in them.
std::vector<Step> steps_to(const mig::MigGpu& gpu, const Layout& wanted);

bool is_destruction(const Step& step);

// The instances that no step touches; programs may go on using them. Empty if a step changes the
// mode: that needs the whole card.
std::vector<model::GpuUuid> kept_instances(const mig::MigGpu& gpu, const std::vector<Step>& steps);

struct GoingInstance {
  model::GpuUuid uuid;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  bool operator==(const GoingInstance&) const = default;
};
std::vector<GoingInstance> going_instances(const std::vector<Step>& steps);

bool changes_mode(const std::vector<Step>& steps);

}  // namespace gantry::mig_change
