// SPDX-License-Identifier: Apache-2.0
// Memory that the driver keeps for this process and nobody uses. Asked for when something does not
// fit.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// Held while a pool or a graph takes memory: what the driver keeps before and after belong
// together. A thread that has it may come again, because what it reserves may ask to reclaim.
class SettleLock {
 public:
  SettleLock();
  ~SettleLock();
  SettleLock(const SettleLock&) = delete;
  SettleLock& operator=(const SettleLock&) = delete;

 private:
  bool entered_;
};
// In the child of a fork.
void reset_settle_lock_after_fork();

// True when there may be more room now.
bool reclaim(uint32_t gpu);

}  // namespace gantry::fence
