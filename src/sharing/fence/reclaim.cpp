// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/reclaim.hpp"

#include "sharing/fence/driver.hpp"
#include "sharing/fence/graphs.hpp"
#include "sharing/fence/lock.hpp"
#include "sharing/fence/pools.hpp"

namespace gantry::fence {
namespace {

constinit Lock settling{};
thread_local bool inside = false;

}  // namespace

SettleLock::SettleLock() : entered_(!inside) {
  if (entered_) settling.lock();
  inside = true;
}
SettleLock::~SettleLock() {
  if (!entered_) return;
  inside = false;
  settling.unlock();
}

void reset_settle_lock_after_fork() {
  settling.reset();
  inside = false;
}

// Another thread may be capturing: in this mode our calls do not disturb it.
bool reclaim(uint32_t gpu) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool changed = real().cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  const bool from_pools = reclaim_pools(gpu);
  const bool from_graphs = reclaim_graphs(gpu);
  if (changed) real().cuThreadExchangeStreamCaptureMode(&mode);
  return from_pools || from_graphs;
}

}  // namespace gantry::fence
