// SPDX-License-Identifier: Apache-2.0

#include "sim/libnvidia-ml/nvml_internal.hpp"

// The arguments are omitted: the answer does not depend on them, and the caller cleans up the
// stack.
#define GANTRY_NVML_UNSUPPORTED(branch, name)                             \
  GANTRY_EXPORT nvmlReturn_t name();                                      \
  GANTRY_EXPORT nvmlReturn_t name() {                                     \
    const nvmlReturn_t entered = gantry::sim::nvml::enter(#name, branch); \
    return entered == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : entered;  \
  }
#include "sim/libnvidia-ml/unsupported.def"
#undef GANTRY_NVML_UNSUPPORTED
