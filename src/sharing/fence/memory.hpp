// SPDX-License-Identifier: Apache-2.0
// What is allocated and not yet freed, by the driver's pointer or handle.
#pragma once

#include "gpu/abi/cuda.h"
#include "sharing/fence/ledger.hpp"

#include <stdint.h>

namespace gantry::fence {

CUcontext current_context();

// A charge that was reserved belongs to this allocation from now on. False when memory is short.
bool remember(uint64_t key, uint32_t gpu, uint64_t charge);
bool remember_managed(uint64_t key, uint32_t gpu, uint64_t charge);

// It is larger than was thought; reserved too.
void remember_more(uint64_t key, uint64_t charge);

// An allocation on its way to the driver's free: taken out before, so that a number used again at
// once is not mistaken; put back if the driver refuses.
class Leaving {
 public:
  explicit Leaving(uint64_t key);
  CUresult done(CUresult result);  // what the driver said

 private:
  uint64_t key_;
  uint64_t charge_ = 0;
  uint64_t granule_ = 0;
  CUcontext context_ = nullptr;
  uint32_t gpu_ = 0;
  uint32_t size_ = 0;
  bool known_;
  Underway call_;
};

// The context is gone, and with it what was allocated in it.
void forget_memory_of(CUcontext context);
// In the child of a fork.
void forget_memory();

}  // namespace gantry::fence
