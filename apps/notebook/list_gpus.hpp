// SPDX-License-Identifier: Apache-2.0
// A line about each GPU that CUDA can use here.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

// 0 and the lines on `out`; 1 with a reason on `err` when there is none.
int look(const Options& options, std::FILE* out, std::FILE* err);

}  // namespace gantry::workload
