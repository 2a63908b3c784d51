// SPDX-License-Identifier: Apache-2.0
// Prints what CUDA reports about every device, with the lines of NVIDIA's sample deviceQueryDrv, or
// of deviceQuery if the program is called by that name.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

// Returns 0 after "Result = PASS", 1 after "Result = FAIL" with a reason on `err`.
int device_query(const Options& options, std::FILE* out, std::FILE* err);

// CUDA cores per multiprocessor; 0 if the capability is unknown.
int cores_per_multiprocessor(int major, int minor);

}  // namespace gantry::workload
