// SPDX-License-Identifier: Apache-2.0
// Kernels that really compute, recognised by name. Others succeed and take their time.
#pragma once

#include "abi/cuda.h"

#include <stdint.h>

namespace gantry::sim::cuda {

struct Launch {
  const char* name;
  uint64_t threads;    // in all
  void** parameters;   // addresses of the arguments, or nullptr
  const char* packed;  // the arguments in one buffer, or nullptr
  uint64_t packed_size;
};

// CUDA_SUCCESS, or the fault that the kernel runs into on the GPU. *broken: the arguments
// themselves cannot be read, which the launch reports.
CUresult run_kernel(const Launch& launch, bool& broken);

}  // namespace gantry::sim::cuda
