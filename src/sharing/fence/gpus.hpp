// SPDX-License-Identifier: Apache-2.0
// Maps CUDA devices to the GPUs of the share. CUDA_VISIBLE_DEVICES may hide and reorder devices, so
// they are identified by UUID.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint32_t kNoGpu = UINT32_MAX;  // not of this share, or no current context

// Call after a successful cuInit.
void find_gpus();
void reset_gpus_after_fork();

// The index in FenceLimits.gpu.
uint32_t gpu_of(CUdevice device);
uint32_t current_gpu();
// The reverse; CU_DEVICE_INVALID if the device is not visible.
CUdevice device_of(uint32_t gpu);
// True if the process sees such a device, in the share or not.
bool is_device(CUdevice device);
bool more_than_one_device();

}  // namespace gantry::fence
