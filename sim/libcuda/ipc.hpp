// SPDX-License-Identifier: Apache-2.0
// One allocation on its way from one process to another.
#pragma once

#include "sim/libcuda/memory.hpp"

#include <stdint.h>

namespace gantry::sim::cuda {

struct IpcHandle {
  uint64_t magic;
  int32_t pid, fd;
  uint32_t gpu;
  int32_t gi;
  uint64_t size, offset;  // of the allocation in the file
  uint64_t id;            // the file's, so that a number used again is not mistaken for it
};

// Moves the memory behind a block to where another process can map it.
CUresult export_block(const Block& block, IpcHandle& handle);
// A block of our own for it, charged to nobody here; `handle.offset` into it is what was exported.
CUresult import_block(const IpcHandle& handle, Context& context, Block*& block);

}  // namespace gantry::sim::cuda
