// SPDX-License-Identifier: Apache-2.0
// Adds two vectors on a GPU and checks the sums: the smallest job that tests driver, device nodes
// and libraries.
#pragma once

#include "workload/cuda.hpp"

#include <cstdio>

namespace gantry::workload {

// Prints the sample's six lines to `out`. Returns 0 if the sums are right, else 1 with a reason on
// `err`.
int vector_add(const Options& options, std::FILE* out, std::FILE* err);

}  // namespace gantry::workload
