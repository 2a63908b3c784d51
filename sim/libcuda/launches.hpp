// SPDX-License-Identifier: Apache-2.0
// Kernel launches: the shape and the arguments, used at once or stored for later.
#pragma once

#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/kernels.hpp"

namespace gantry::sim::cuda {

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

// Arguments in one buffer, as on the GPU. The owner frees the data.
struct Arguments {
  char* data;
  uint64_t size;
};

constexpr uint64_t kMaxArgumentBytes = 32768;

uint64_t blocks_in(const Shape& shape);
uint64_t threads_in(const Shape& shape);

// Whether this kernel can be launched in this way in this context. nullptr is not a kernel.
CUresult check_launch(const Function* function, const Context& context, const Shape& shape);

// Runs the kernel on the CPU; `duration_ns` is the time that the GPU would take.
CUresult execute(const Device& device, const Shape& shape, const Launch& work,
                 uint64_t& duration_ns);

// A copy of the arguments for later, from either of the two forms that launches take. The arguments
// of an unknown kernel are not copied: their size is unknown and they are never read.
CUresult pack(const Function& function, void** parameters, void** extra, Arguments& arguments);

}  // namespace gantry::sim::cuda
