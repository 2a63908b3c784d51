// SPDX-License-Identifier: Apache-2.0
// For tests of the gate under the thread sanitizer: a small driver with one GPU, instrumented like
// the rest. The simulated driver is a separate library and is not instrumented.
#pragma once

#include "gpu/abi/cuda.h"
#include "gpu/abi/fence.h"

#include <cstdint>
#include <vector>

namespace gantry::fence::test {

// Makes real() return this driver, and limits() a page with an open gate.
void start_small_driver();
FenceLimits& page();
void set_gate(FenceGate state, std::uint32_t turn);

// Adds work of this length to the stream, as a launch does in the driver.
CUresult enqueue(CUstream stream, std::uint64_t nanoseconds);
bool all_ended();
// The number of reports so far, and of calls that named a destroyed stream.
std::vector<FenceReport> reports();
std::uint64_t misuses();

}  // namespace gantry::fence::test
