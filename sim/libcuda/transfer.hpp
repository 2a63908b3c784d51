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
// A host pointer may also point to page-locked, managed or even device memory.
inline Side host_side(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return {address, block_at(address) != nullptr};
}

// Returns false if a side is not valid memory of its kind over the whole length.
bool valid(Side side, uint64_t bytes);
// Both sides must be valid.
void move(Side to, Side from, uint64_t bytes);

Path path_between(Side to, Side from);

// Does a copy or a fill at once; `duration_ns` is the time that the card would take.
CUresult copy_now(const CUDA_MEMCPY3D& copy, const Device& device, uint64_t& duration_ns);
CUresult fill_now(const CUDA_MEMSET_NODE_PARAMS& fill, const Device& device, uint64_t& duration_ns);

}  // namespace gantry::sim::cuda
