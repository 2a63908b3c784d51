// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. A pool takes memory from the card in large steps and keeps freed memory
// until the program synchronises. Then it returns the memory above its threshold.
#pragma once

#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/memory.hpp"

namespace gantry::sim::cuda {

// Pools and graphs take memory in such steps, as on an H200: 40 MiB in a graph use 64.
constexpr uint64_t kPoolStep = 32ULL << 20U;

Pool* make_pool(Device& device, uint64_t max_bytes);
Pool* default_pool(Device& device);  // nullptr when memory is short
// Makes room for `bytes` more in the pool; takes memory from the card if needed.
CUresult enter_pool(Pool& pool, uint64_t bytes);
void leave_pool(Pool& pool, uint64_t bytes);
void shrink_pools(Device& device);

// Memory of another process's pool.
bool is_pool_import(const Block& block);
// Frees any memory that cuMemFreeAsync accepts.
void drop_pooled(Block& block);

}  // namespace gantry::sim::cuda
