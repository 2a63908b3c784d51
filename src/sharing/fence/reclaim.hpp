// SPDX-License-Identifier: Apache-2.0
// Releases memory that the driver keeps for this process without using it. Called when an
// allocation does not fit.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// Held while a pool or a graph allocates memory, because the driver's reservations before and after
// must be compared. A thread may take it again, because its own reservation may call reclaim.
class SettleLock {
 public:
  SettleLock();
  ~SettleLock();
  SettleLock(const SettleLock&) = delete;
  SettleLock& operator=(const SettleLock&) = delete;

 private:
  bool entered_;
};
// Call this in the child of a fork.
void reset_settle_lock_after_fork();

// True if there may be more room now.
bool reclaim(uint32_t gpu);

}  // namespace gantry::fence
