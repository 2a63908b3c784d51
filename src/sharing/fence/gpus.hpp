// SPDX-License-Identifier: Apache-2.0
// Which GPU of the share a CUDA device is. CUDA_VISIBLE_DEVICES may hide and reorder devices; their
// UUIDs say which they are.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint32_t kNoGpu = UINT32_MAX;  // not of this share, or no current context

// After a successful cuInit.
void find_gpus();
void reset_gpus_after_fork();

// The index in FenceLimits.gpu.
uint32_t gpu_of(CUdevice device);
uint32_t current_gpu();
// The other way round; CU_DEVICE_INVALID when it is not visible.
CUdevice device_of(uint32_t gpu);
// Whether the process sees such a device, of the share or not.
bool is_device(CUdevice device);
bool more_than_one_device();

}  // namespace gantry::fence
