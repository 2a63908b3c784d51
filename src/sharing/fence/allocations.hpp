// SPDX-License-Identifier: Apache-2.0
// What is allocated and not yet freed, by the driver's pointer or handle.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/ledger.hpp"

#include <stdint.h>

namespace gantry::fence {

CUcontext current_context();

// A charge that was reserved belongs to this allocation from now on. False when memory is short.
bool add_allocation(uint64_t key, uint32_t gpu, uint64_t charge);
bool add_managed_allocation(uint64_t key, uint32_t gpu, uint64_t charge);

// It is larger than was thought; reserved too.
void grow_allocation(uint64_t key, uint64_t charge);

// An allocation on its way to the driver's free: taken out before, so that a number used again at
// once is not mistaken; put back if the driver refuses.
class PendingFree {
 public:
  explicit PendingFree(uint64_t key);
  CUresult done(CUresult result);  // what the driver said

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

// The context is gone, and with it what was allocated in it.
void drop_allocations_of(CUcontext context);
// In the child of a fork.
void reset_allocations_after_fork();

}  // namespace gantry::fence
