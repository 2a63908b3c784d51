// SPDX-License-Identifier: Apache-2.0
// Kernels that really compute, recognised by name. All other kernels succeed and only take time.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::sim::cuda {

struct Launch {
  const char* name;
  uint64_t threads;    // in all
  void** parameters;   // addresses of the arguments, or nullptr
  const char* packed;  // the arguments in one buffer, or nullptr
  uint64_t packed_size;
};

// Returns CUDA_SUCCESS, or the fault of the kernel on the GPU. `broken`: the arguments cannot be
// read, which the launch reports. `duration_ns` does not change if the time follows from the shape
// of the launch.
CUresult run_kernel(const Launch& launch, bool& broken, uint64_t& duration_ns);

// The arguments of a kernel that computes, one letter each: p an address or another eight bytes, i
// and f four bytes. nullptr for an unknown kernel, whose arguments are never read.
const char* parameters_of(const char* kernel);

}  // namespace gantry::sim::cuda
