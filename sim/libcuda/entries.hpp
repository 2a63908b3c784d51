// SPDX-License-Identifier: Apache-2.0
// The bodies of the entry points, one for each line of abi/cuda_entries.def, under the same names.
// They are called with the driver's lock held and, but for the early ones, after cuInit.
#pragma once

#include "gpu/abi/cuda.h"

namespace gantry::sim::cuda::entry {

#define CUDA_ENTRY(symbol, name, since, parameters, arguments) CUresult symbol parameters;
#include "gpu/abi/cuda_entries.def"

}  // namespace gantry::sim::cuda::entry
