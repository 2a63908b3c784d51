// SPDX-License-Identifier: Apache-2.0
// Small allocations share the granules that the card gives out, in units of 512 bytes.
#pragma once

#include "sim/libcuda/memory.hpp"

namespace gantry::sim::cuda {

constexpr uint64_t kSmall = 1ULL << 20U;  // up to this an allocation is small
constexpr uint64_t kUnit = 512;

CUresult allocate_small(Context& context, uint64_t bytes, Block*& block);
// Gives the units back, and the granule with its last one. The caller removes the block.
void release_small(Block& block);
// Where the granule begins that a small block lies in.
uint64_t chunk_address(const Block& block);

}  // namespace gantry::sim::cuda
