// SPDX-License-Identifier: Apache-2.0
// The profiles of GPUs that this machine may not have, to plan layouts for them. On a machine with
// the GPU, the driver's own answer is used instead.
#pragma once

#include "base/core/result.hpp"
#include "gpu/mig/mig_gpu.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

// "A100-40GB", "H200", ...
std::vector<std::string> known_models();

// A GPU of this model in MIG mode, without instances. Upper and lower case are the same. NotFound,
// with the known names, for other models.
Result<MigGpu> known_gpu(std::string_view model);

// The model with this PCI id (device << 16 | vendor); "" if it is not in the table.
std::string model_of(std::uint32_t device_id);

// The driver reports wrong numbers of instances for an A30 (NVIDIA's mig-parted has a table for it,
// too): replaces them.
void correct_profiles(MigGpu& gpu);

}  // namespace gantry::mig
