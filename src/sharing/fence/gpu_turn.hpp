// SPDX-License-Identifier: Apache-2.0
// What the keeper knows of this process on one GPU: whether it wants it (active, idle), and whether
// it has left it at the end of a turn (drained). Every change of that is here, one after the other.
#pragma once

#include "gpu/abi/fence.h"
#include "sharing/fence/lock.hpp"

#include <stdint.h>

#include <atomic>

namespace gantry::fence {

enum class Demand : uint32_t {
  Idle,   // the keeper knows
  Quiet,  // nothing on the GPU, but more is expected at once: the keeper thinks us busy
  Busy,
};

struct GpuTurn {
  // Read at every launch, written when the demand changes.
  alignas(64) std::atomic<Demand> demand;
  // Written at marks.
  alignas(64) std::atomic<uint64_t> queued_ns;  // expected time of what the marks cover
  std::atomic<uint64_t> cost_ns;                // of a launch, over all streams; 0: not known
  std::atomic<uint64_t> launches;
  std::atomic<uint32_t> pacing;  // threads that wait for room in the queue: they look themselves
  std::atomic<uint32_t> alone;   // 1: when the gate was last open, one launch at a time was allowed

  alignas(64) Lock lock;  // of what follows, and of reports: they go out in order
  uint32_t waiting;       // threads at the gate
  uint64_t quiet_since_ns;
  uint64_t gap_ns;  // how long it usually is quiet
  bool gap_known;
  uint64_t drained_at;  // turn + 1 that was reported
  // The follower's.
  std::atomic<uint32_t> follower;    // 1: there is one
  std::atomic<uint32_t> asleep;      // 1: it waits for the bell, or is about to
  std::atomic<uint32_t> wake_futex;  // a futex
};

GpuTurn& turn_of(uint32_t gpu);

// Before the first launch after a pause. True: the keeper is to be told, but not necessarily before
// the launch: between two kernels of others the GPU takes what is there. Nothing is reported as
// idle until then, because the launch has begun and not ended.
bool become_active(uint32_t gpu);
void report_active(uint32_t gpu);
// A thread stands at the shut gate, and no longer does.
void start_waiting(uint32_t gpu);
void stop_waiting(uint32_t gpu);

enum class IdleHint : uint8_t {
  Waited,   // the program has just waited for its work: the keeper wants to know at once
  Noticed,  // found by looking now and then
};
// All work seems to have ended. Tells the keeper what is due: drained, idle.
void report_if_idle(uint32_t gpu, IdleHint hint);
void report_drained(uint32_t gpu, uint32_t gate);
// For people: what the row says of launches.
void show_launches(uint32_t gpu, uint64_t more);
// In rows that are new: the keeper looks there for what was reported to another one. Asks for no
// lock.
void show_demand();
void reset_turns_after_fork();

}  // namespace gantry::fence
