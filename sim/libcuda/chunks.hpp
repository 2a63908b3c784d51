// SPDX-License-Identifier: Apache-2.0
// Small allocations share granules of the card's memory, in units of 512 bytes.
#pragma once

#include "sim/libcuda/memory.hpp"

namespace gantry::sim::cuda {

constexpr uint64_t kSmall = 1ULL << 20U;  // an allocation up to this size is small
constexpr uint64_t kUnit = 512;

CUresult allocate_small(Context& context, uint64_t bytes, Block*& block);
// Frees the units, and the granule with its last unit. The caller removes the block.
void release_small(Block& block);
// The start of the granule that contains a small block.
uint64_t chunk_address(const Block& block);

}  // namespace gantry::sim::cuda
