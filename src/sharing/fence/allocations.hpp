// SPDX-License-Identifier: Apache-2.0
// The allocations that are not freed yet, by the driver's pointer or handle.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/ledger.hpp"

#include <stdint.h>

namespace gantry::fence {

CUcontext current_context();

// Assigns a reserved charge to this allocation. False if this process is out of host memory.
bool add_allocation(uint64_t key, uint32_t gpu, uint64_t charge);
bool add_managed_allocation(uint64_t key, uint32_t gpu, uint64_t charge);

// The allocation is larger than expected; the difference is already reserved.
void grow_allocation(uint64_t key, uint64_t charge);

// An allocation that is being freed. It is removed before the driver's call, because the driver may
// reuse the pointer at once, and put back if the driver refuses.
class PendingFree {
 public:
  explicit PendingFree(uint64_t key);
  CUresult done(CUresult result);  // the driver's result

 private:
  uint64_t key_;
  uint64_t charge_ = 0;
  uint64_t granule_ = 0;
  CUcontext context_ = nullptr;
  uint32_t gpu_ = 0;
  uint32_t size_ = 0;
  bool known_;
  MemoryCall call_;
};

// The context is gone, together with its allocations.
void drop_allocations_of(CUcontext context);
// Call this in the child of a fork.
void reset_allocations_after_fork();

}  // namespace gantry::fence
