// SPDX-License-Identifier: Apache-2.0
// Shares one allocation with another process.
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
  uint64_t id;            // of the file, because a descriptor number can be used again
};

// Moves the memory of a block into a file that another process can map.
CUresult export_block(const Block& block, IpcHandle& handle);
// Creates a block for it in this process, without a charge. The exported memory begins at
// `handle.offset` in it.
CUresult import_block(const IpcHandle& handle, Context& context, Block*& block);

}  // namespace gantry::sim::cuda
