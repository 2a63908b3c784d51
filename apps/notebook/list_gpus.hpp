// SPDX-License-Identifier: Apache-2.0
// Prints one line about each GPU that CUDA can use here.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

// Returns 0 with the lines on `out`; 1 with a reason on `err` if there is no GPU.
int look(const Options& options, std::FILE* out, std::FILE* err);

}  // namespace gantry::workload
