// SPDX-License-Identifier: Apache-2.0
// Small allocations. The driver takes a granule of memory from the card and gives out parts of it;
// where a part lies tells which granule it is of, so what is charged is what the driver took.
#pragma once

#include "sharing/fence/lock.hpp"

#include <stdint.h>

namespace gantry::fence {

inline constexpr uint64_t kMaxSmallBytes = 1ULL << 20U;  // up to this the driver shares granules

// Whether the granule that was used last has that much left.
bool fits_last_granule(uint32_t gpu, uint64_t bytes);
// Whether any has, as far as one can know.
bool fits_any_granule(uint32_t gpu, uint64_t bytes);

// Held around an allocation: nobody else enters a granule meanwhile.
Lock& small_allocation_lock();
enum class Granule : uint8_t { Known, New, OutOfMemory };  // OutOfMemory: memory is short
// A part of this size lies there. A new granule's charge belongs to it from now on.
Granule enter_granule(uint64_t address, uint32_t gpu, uint64_t bytes, uint64_t& granule);
// It was new and is not paid for: nothing is given back.
void drop_granule(uint64_t granule);
// With its last part the granule goes back.
void leave_granule(uint64_t granule, uint64_t bytes);
void reset_granules_after_fork();

bool add_small_allocation(uint64_t key, uint32_t gpu, uint64_t granule, uint32_t size);

}  // namespace gantry::fence
