// SPDX-License-Identifier: Apache-2.0
// Small allocations. The driver allocates a granule of GPU memory and hands out parts of it. The
// address of a part tells its granule, so the charge is what the driver really allocated.
#pragma once

#include "sharing/fence/lock.hpp"

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint64_t kMaxSmallBytes = 1ULL
                                           << 20U;  // up to this size the driver shares granules

// True if the last used granule has this much left.
bool fits_last_granule(uint32_t gpu, uint64_t bytes);
// True if any granule has, as far as is known.
bool fits_any_granule(uint32_t gpu, uint64_t bytes);

// Held around an allocation, so that no other thread adds a part meanwhile.
Lock& small_allocation_lock();
enum class Granule : uint8_t { Known, New, OutOfMemory };  // OutOfMemory: out of host memory
// Records a part of this size. If its granule is new, the granule gets the reserved charge.
Granule enter_granule(uint64_t address, uint32_t gpu, uint64_t bytes, uint64_t& granule);
// The granule was new and has no charge: nothing is released.
void drop_granule(uint64_t granule);
// The granule's charge is released with its last part.
void leave_granule(uint64_t granule, uint64_t bytes);
void reset_granules_after_fork();

bool add_small_allocation(uint64_t key, uint32_t gpu, uint64_t granule, uint32_t size);

}  // namespace gantry::fence
