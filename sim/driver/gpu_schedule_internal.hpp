// SPDX-License-Identifier: Apache-2.0
// How processes share the time of a simulated GPU: the state, in memory that all of them map, and
// the rule that advances it. It is pure arithmetic: gpu_time.cpp handles locks, the clock and dead
// processes.
//
// Every process has its own time on each GPU. It runs with the wall clock while the process has no
// work there or has the GPU, and stops while another process has it. Work is scheduled on the
// process's own time, so enqueued work does not change when other processes come and go.
#pragma once

#include <stdint.h>

namespace gantry::sim {

constexpr uint64_t kSliceNs = 2000000;    // of one process, while another waits
constexpr uint64_t kSwitchNs = 120000;    // a switch between two processes; the GPU does no work
constexpr uint64_t kSampleNs = 50000000;  // busy time is sampled at this interval
constexpr uint32_t kMaxProcessSlots = 256;
constexpr uint32_t kMaxTimedGpus = 16;
constexpr uint32_t kMaxTimedInstances = 16;
constexpr uint32_t kMaxTimelines = kMaxTimedGpus * (1 + kMaxTimedInstances);
constexpr uint32_t kMarks = 1024;
constexpr uint32_t kSamples = 64;

struct TimeMark {  // from this moment on the slot's own time ran or stopped
  uint64_t wall, own;
  uint32_t runs, reserved;
};

struct TimeSample {
  uint64_t wall, busy;
};

struct ProcessSlot {  // one process on one GPU or MIG instance
  uint32_t used;
  uint32_t timeline;
  int32_t pid;  // in its own pid namespace
  uint32_t reserved;
  uint64_t space;  // that namespace
  uint64_t own;    // its own time, as of the timeline's wall
  uint64_t until;  // its work ends here, on its own time
  uint64_t busy;   // how long it has had the GPU
  uint64_t mark_count, sample_count;
  TimeMark mark[kMarks];        // the newest ones
  TimeSample sample[kSamples];  // the newest ones
};

struct Timeline {      // a GPU, or one instance of it
  uint64_t wall;       // everything is accounted up to here
  uint32_t current;    // slot that has it or had it last
  uint32_t switching;  // 1: between two processes, until `free_at`
  uint64_t free_at, slice_end;
};

struct TimeRegion {
  uint64_t magic;
  uint32_t size, speed;
  uint32_t slot_count;  // slots from this one on were never used
  uint32_t reserved;
  Timeline timeline[kMaxTimelines];
  ProcessSlot slot[kMaxProcessSlots];
};

// Advances to `wall`. Time never runs back: an earlier moment changes nothing.
void advance(TimeRegion& region, uint32_t timeline, uint64_t wall);

void claim_slot(TimeRegion& region, uint32_t slot, uint32_t timeline, int32_t pid, uint64_t space);
// The least wall time until the slot's own time reaches the moment; 0 if it has.
uint64_t time_until(const TimeRegion& region, uint32_t slot, uint64_t own);
// The wall time at which the slot's own time reached `own`; the timeline's present if it has not
// yet.
uint64_t wall_time(const TimeRegion& region, uint32_t slot, uint64_t own);
// Busy time between `from` and the timeline's present; sets `from` to the real start of the count.
uint64_t busy_since(const TimeRegion& region, uint32_t slot, uint64_t& from);

inline bool has_work(const ProcessSlot& slot) {
  return slot.until > slot.own;
}

}  // namespace gantry::sim
