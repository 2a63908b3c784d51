// SPDX-License-Identifier: Apache-2.0
// A container behind the fence: what it gets of its GPUs as any other, with our libraries in front
// of the driver's. Pure, as all of plan.
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

// `edits`, made with Flavour::NoHooks or OneHook, become those of a share: wherever they put the
// driver's libraries, libcuda and libnvidia-ml are ours; the driver's own are where only ours look.
// A hook covers what the image has of its own. NotFound where the driver has no libcuda.
Status add_fence(const model::Inventory& machine, const PlanOptions& options,
                 const FenceOptions& fence, model::ContainerEdits& edits);

}  // namespace gantry::plan
