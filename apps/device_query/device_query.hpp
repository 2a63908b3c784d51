// SPDX-License-Identifier: Apache-2.0
// What CUDA says about every device, in the layout of the sample of that name.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

// 0 after "Result = PASS"; 1 after "Result = FAIL", with a reason on `err`.
int device_query(const Options& options, std::FILE* out, std::FILE* err);

// CUDA cores of one multiprocessor; 0 when the capability is not known.
int cores_per_multiprocessor(int major, int minor);

}  // namespace gantry::workload
