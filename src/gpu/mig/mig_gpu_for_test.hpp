// SPDX-License-Identifier: Apache-2.0
// GPUs of known models with instances in them.
#pragma once

#include "gpu/mig/solve.hpp"

#include <string_view>
#include <vector>

namespace gantry::mig {

// A known model with the instances that the layout asks for. The compute instances have UUIDs
// MIG-0, MIG-1, ... in the order of their places.
MigGpu gpu_for_test(std::string_view model, std::string_view layout = "on");

LayoutRequest layout_for_test(std::string_view words);

// The words of what the GPU has after the plan, with all places; or "refused: REASON".
std::string result_for_test(const MigGpu& gpu, const LayoutDecision& decision);

// Gives GPU instances ids and compute instances UUIDs, where they have none.
void name_instances_for_test(MigGpu& gpu);

}  // namespace gantry::mig
