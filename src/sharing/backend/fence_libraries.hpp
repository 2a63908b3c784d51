// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::backend {

// The fence's libraries of this installation: ../lib/gantry next to the program, ../lib in a build
// tree, or the directory that GANTRY_FENCE_LIBRARIES names.
struct FenceLibraries {
  std::string cuda;
  std::string nvml;
};
Result<FenceLibraries> find_fence();

}  // namespace gantry::backend
