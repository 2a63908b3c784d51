// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. A pool allocates GPU memory in its own steps and keeps it for a while
// after it was freed. The charge is what all pools of this process have reserved.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

// The step in which the driver's pools and the memory of graphs grow. If the real step differs, the
// pool's own value counts afterwards.
constexpr uint64_t kPoolStep = 32ULL << 20U;

// The program has synchronised, so pools may have released memory. If no pool is in use, this only
// reads one variable.
void pools_synced();
// Call this when something was destroyed that pools depend on.
void pools_changed();
// Releases the memory that pools keep but do not use.
bool reclaim_pools(uint32_t gpu);
// Call this in the child of a fork.
void reset_pools_after_fork();

}  // namespace gantry::fence
