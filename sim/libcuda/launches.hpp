// SPDX-License-Identifier: Apache-2.0
// A kernel on its way to the GPU: its shape and its arguments, at once or kept for later.
#pragma once

#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/kernels.hpp"

namespace gantry::sim::cuda {

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

// Arguments in one buffer, as they lie on the GPU. The owner frees the data.
struct Arguments {
  char* data;
  uint64_t size;
};

constexpr uint64_t kMaxArgumentBytes = 32768;

uint64_t blocks_in(const Shape& shape);
uint64_t threads_in(const Shape& shape);

// Whether this kernel can be launched so in this context. nullptr is no kernel.
CUresult check_launch(const Function* function, const Context& context, const Shape& shape);

// Computes what the kernel computes; how long the GPU takes for it is in `duration_ns`.
CUresult execute(const Device& device, const Shape& shape, const Launch& work,
                 uint64_t& duration_ns);

// A copy of the arguments for later, from either of the two forms that launches take. Those of a
// kernel that nobody knows are not copied: how long they are is not known, and nobody reads them.
CUresult pack(const Function& function, void** parameters, void** extra, Arguments& arguments);

}  // namespace gantry::sim::cuda
