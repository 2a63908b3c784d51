// SPDX-License-Identifier: Apache-2.0
// The compute instances that a GPU instance of so many compute slices can be divided into. NVML
// lists them only for a GPU instance that exists; this is the same table for planning.
#pragma once

#include "gpu/mig/mig_gpu.hpp"

#include <vector>

namespace gantry::mig {

// Small ones first; the last one takes the whole GPU instance.
std::vector<ComputeProfile> usual_compute_profiles(const GpuProfile& profile);

}  // namespace gantry::mig
