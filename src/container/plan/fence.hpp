// SPDX-License-Identifier: Apache-2.0
// Edits for a container behind the fence: those of any other container, with our libraries in front
// of the driver's. Pure, like all of plan.
#pragma once

#include "base/core/result.hpp"
#include "container/plan/edits.hpp"
#include "gpu/model/container_edits.hpp"
#include "gpu/model/inventory.hpp"

#include <string>

namespace gantry::plan {

struct FenceOptions {
  std::string share;      // its name
  std::string directory;  // the share's fence directory, inside the host's root
  // Our libraries, as the engine sees them: never below the root of a simulated machine.
  std::string cuda_library;
  std::string nvml_library;
};

// Changes `edits` (of Flavour::NoHooks or OneHook) for a share: our libcuda and libnvidia-ml
// replace the driver's everywhere, and the driver's own are at a path where only ours look for
// them. A hook covers the image's own copies. NotFound if the driver has no libcuda.
Status add_fence(const model::Inventory& machine, const PlanOptions& options,
                 const FenceOptions& fence, model::ContainerEdits& edits);

}  // namespace gantry::plan
