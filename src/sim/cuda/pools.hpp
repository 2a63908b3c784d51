// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. A pool takes memory from the card in large steps and keeps what was freed
// until somebody synchronises, then gives back what is above its threshold.
#pragma once

#include "sim/cuda/driver.hpp"

namespace gantry::sim::cuda {

Pool* default_pool(Device& device);  // nullptr when memory is short
// Room for `bytes` more in the pool, taken from the card where needed.
CUresult enter_pool(Pool& pool, uint64_t bytes);
void leave_pool(Pool& pool, uint64_t bytes);
void shrink_pools(Device& device);

}  // namespace gantry::sim::cuda
