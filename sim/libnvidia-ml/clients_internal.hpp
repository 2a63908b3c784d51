// SPDX-License-Identifier: Apache-2.0
// Which processes have a GPU open through NVML. Each session holds read locks on its own library
// file, one byte for each GPU: every process of the machine sees them, also from a container, and
// the kernel drops them when their holder dies.
#pragma once

#include "sim/libnvidia-ml/nvml_internal.hpp"

namespace gantry::sim::nvml {

// For nvmlInit and nvmlShutdown, which hold the session's lock.
void hold_gpus();
void release_gpus();

// Whether another process has a session with this GPU.
bool has_other_session(uint32_t gpu);

}  // namespace gantry::sim::nvml
