// SPDX-License-Identifier: Apache-2.0
// For tests of the gate under the thread sanitizer: a driver of one GPU in a few lines,
// instrumented like the rest, where the simulated one is a library of its own.
#pragma once

#include "gpu/abi/cuda.h"
#include "gpu/abi/fence.h"

#include <cstdint>
#include <vector>

namespace gantry::fence::test {

// Puts the driver behind real(), and a page with an open gate behind limits().
void start_small_driver();
FenceLimits& page();
void set_gate(FenceGate state, std::uint32_t turn);

// Work of that length on the stream; what a launch does in the driver.
CUresult enqueue(CUstream stream, std::uint64_t nanoseconds);
bool all_ended();
// Reports so far, and calls that named a stream after its end.
std::vector<FenceReport> reports();
std::uint64_t misuses();

}  // namespace gantry::fence::test
