// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. A pool takes memory from the card in large steps and keeps what was freed
// until somebody synchronises, then gives back what is above its threshold.
#pragma once

#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/memory.hpp"

namespace gantry::sim::cuda {

Pool* make_pool(Device& device, uint64_t max_bytes);
Pool* default_pool(Device& device);  // nullptr when memory is short
// Room for `bytes` more in the pool, taken from the card where needed.
CUresult enter_pool(Pool& pool, uint64_t bytes);
void leave_pool(Pool& pool, uint64_t bytes);
void shrink_pools(Device& device);

// Memory of another process's pool.
bool is_pool_import(const Block& block);
// The end of any memory that cuMemFreeAsync takes.
void drop_pooled(Block& block);

}  // namespace gantry::sim::cuda
