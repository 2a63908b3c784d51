// SPDX-License-Identifier: Apache-2.0
// The daemon's record of this process on one GPU: whether it wants the GPU (active, idle), and
// whether it has left it at the end of a turn (drained). All changes of that state are made here,
// in order.
#pragma once

#include "gpu/abi/fence.h"
#include "sharing/fence/lock.hpp"

#include <stdint.h>

#include <atomic>

namespace gantry::fence {

enum class Demand : uint32_t {
  Idle,   // the daemon knows
  Quiet,  // nothing on the GPU, but more is expected at once: still busy for the daemon
  Busy,
};

struct GpuTurn {
  // Read at every launch, written when the demand changes.
  alignas(64) std::atomic<Demand> demand;
  // Written at marks.
  alignas(64) std::atomic<uint64_t> queued_ns;  // expected time of the work that the marks cover
  std::atomic<uint64_t> cost_ns;                // of a launch, over all streams; 0: unknown
  std::atomic<uint64_t> launches;
  std::atomic<uint32_t> pacing;  // threads that wait for room in the queue and poll themselves
  std::atomic<uint32_t> alone;   // 1: when the gate was last open, it allowed one launch at a time

  alignas(64) Lock lock;  // protects what follows, and keeps reports in order
  uint32_t waiting;       // threads at the gate
  uint64_t quiet_since_ns;
  uint64_t gap_ns;  // usual length of a pause
  bool gap_known;
  uint64_t drained_at;  // the reported turn + 1
  // State of the completion thread.
  std::atomic<uint32_t> follower;    // 1: the thread exists
  std::atomic<uint32_t> asleep;      // 1: it waits for the futex, or is about to
  std::atomic<uint32_t> wake_futex;  // a futex
};

GpuTurn& turn_of(uint32_t gpu);

// Call before the first launch after a pause. True: the daemon must be told, but not necessarily
// before the launch, because the GPU takes waiting work between two kernels of others. Until then
// nothing is reported as idle, because the launch has begun and not ended.
bool become_active(uint32_t gpu);
void report_active(uint32_t gpu);
// A thread waits at the shut gate, or no longer waits.
void start_waiting(uint32_t gpu);
void stop_waiting(uint32_t gpu);

enum class IdleHint : uint8_t {
  Waited,   // the program has just waited for its work: tell the daemon at once
  Noticed,  // found by polling
};
// All work seems to have ended. Reports to the daemon what is due: drained, idle.
void report_if_idle(uint32_t gpu, IdleHint hint);
void report_drained(uint32_t gpu, uint32_t gate);
// True if this process may have work on the GPU: it is active, and has not yet left the GPU if the
// gate is shut.
bool uses_gpu(uint32_t gpu, uint32_t gate);
// Updates the number of launches in the row, which is shown to people.
void show_launches(uint32_t gpu, uint64_t more);
// Fills new rows: a new daemon reads there what was reported to the previous one. Takes no lock.
void show_demand();
void reset_turns_after_fork();

}  // namespace gantry::fence
