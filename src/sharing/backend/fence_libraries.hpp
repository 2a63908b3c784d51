// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::backend {

// The fence libraries of this installation: in ../lib/gantry relative to the program, in ../lib of
// a build tree, or in the directory that GANTRY_FENCE_LIBRARIES names.
struct FenceLibraries {
  std::string cuda;
  std::string nvml;
};
Result<FenceLibraries> find_fence();

}  // namespace gantry::backend
