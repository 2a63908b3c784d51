// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. A pool takes memory from the card in steps of its own and keeps it for a
// while after it was freed; what is charged is what all pools of this process have reserved.
#pragma once

#include "gpu/abi/cuda.h"

#include <stdint.h>

namespace gantry::fence {

// Somebody has synchronised: pools may have given memory back. Costs one look where none is in use.
void pools_synced();
// Something was destroyed that pools depend on.
void pools_changed();
// Gives back what they keep and nobody uses.
bool reclaim_pools(uint32_t gpu);
// In the child of a fork.
void reset_pools_after_fork();

}  // namespace gantry::fence
