// SPDX-License-Identifier: Apache-2.0
// Bytes in and out of device memory. A side is device memory, which is checked, or the program's
// own memory, which is trusted as memcpy trusts it.
#pragma once

#include "sim/libcuda/clock.hpp"
#include "sim/libcuda/memory.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

struct Side {
  uint64_t address;
  bool device;
};

inline Side device_side(uint64_t address) {
  return {address, true};
}
// Page-locked, managed and even device memory may stand where a host pointer is asked for.
inline Side host_side(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return {address, block_at(address) != nullptr};
}

// False when a side is not what it says over its whole length.
bool valid(Side side, uint64_t bytes);
// Both sides must be valid.
void move(Side to, Side from, uint64_t bytes);

Path path_between(Side to, Side from);

// What a copy or a fill does, at once; how long the card takes for it is in `duration_ns`.
CUresult copy_now(const CUDA_MEMCPY3D& copy, const Device& device, uint64_t& duration_ns);
CUresult fill_now(const CUDA_MEMSET_NODE_PARAMS& fill, const Device& device, uint64_t& duration_ns);

}  // namespace gantry::sim::cuda
