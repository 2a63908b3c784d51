// SPDX-License-Identifier: Apache-2.0
// The checkpoint file of NVIDIA's mig-parted, version v1: mode and instances of each GPU, as JSON.
// It names profiles by NVML's numbers (NVML_GPU_INSTANCE_PROFILE_*), not by their names.
#pragma once

#include "base/core/result.hpp"
#include "gpu/mig/layout.hpp"
#include "gpu/mig/mig_gpu.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

struct CheckpointCompute {
  unsigned profile = 0;  // NVML_COMPUTE_INSTANCE_PROFILE_*
  unsigned engines = 0;  // NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_*; 0 is the only one there is
  bool operator==(const CheckpointCompute&) const = default;
};

struct CheckpointInstance {
  unsigned profile = 0;  // NVML_GPU_INSTANCE_PROFILE_*
  Placement place;
  std::vector<CheckpointCompute> compute;
  bool operator==(const CheckpointInstance&) const = default;
};

struct CheckpointGpu {
  model::GpuUuid uuid;
  bool enabled = false;
  std::vector<CheckpointInstance> instances;
  bool operator==(const CheckpointGpu&) const = default;
};

// GPUs without MIG are left out.
std::string write_checkpoint(const std::vector<MigGpu>& gpus);

Result<std::vector<CheckpointGpu>> parse_checkpoint(std::string_view text, std::string_view file);

// The saved layout, in the names of the GPU. NotFound if the GPU does not offer a saved profile.
Result<LayoutRequest> saved_layout(const CheckpointGpu& saved, const MigGpu& gpu);

// NVML_GPU_INSTANCE_PROFILE_* of a profile; nullopt if none is known for its name.
std::optional<unsigned> nvml_number(const MigGpu& gpu, const GpuProfile& profile);

}  // namespace gantry::mig
