// SPDX-License-Identifier: Apache-2.0
// Adds two vectors on a GPU and checks the sums: the smallest job that proves driver, nodes and
// libraries.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

// Prints the sample's six lines to `out`. 0 when the sums are right, 1 with a reason on `err`
// otherwise.
int vector_add(const Options& options, std::FILE* out, std::FILE* err);

}  // namespace gantry::workload
