// SPDX-License-Identifier: Apache-2.0
// How processes share a simulated GPU's time: the state, which lies in memory that all of them map,
// and the one rule by which it goes on. Pure arithmetic: who holds a lock, what the time is and who
// is alive is the business of gpu_time.cpp.
//
// Every process has a time of its own on each GPU. It runs with the wall's while the process has no
// work there or has the GPU, and stands while another process has it. Work is put on a process's
// own time, so nothing that was enqueued must be changed when others come and go.
#pragma once

#include <stdint.h>

namespace gantry::sim {

constexpr uint64_t kSliceNs = 2000000;    // of one process, while another waits
constexpr uint64_t kSwitchNs = 120000;    // between two processes the GPU works for nobody
constexpr uint64_t kSampleNs = 50000000;  // busy time is noted this often
constexpr uint32_t kMaxProcessSlots = 256;
constexpr uint32_t kMaxTimedGpus = 16;
constexpr uint32_t kMaxTimedInstances = 16;
constexpr uint32_t kMaxTimelines = kMaxTimedGpus * (1 + kMaxTimedInstances);
constexpr uint32_t kMarks = 1024;
constexpr uint32_t kSamples = 64;

struct TimeMark {  // from this moment on the seat's own time ran, or stood
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
  uint64_t own;    // its own time, as of the lane's wall
  uint64_t until;  // its work ends here, on its own time
  uint64_t busy;   // how long it has had the GPU
  uint64_t mark_count, sample_count;
  TimeMark mark[kMarks];        // the newest ones
  TimeSample sample[kSamples];  // likewise
};

struct Timeline {      // a GPU, or one instance of it
  uint64_t wall;       // up to here everything is accounted
  uint32_t current;    // seat that has it or had it last
  uint32_t switching;  // 1: between two processes, until `free_at`
  uint64_t free_at, slice_end;
};

struct TimeRegion {
  uint64_t magic;
  uint32_t size, speed;
  uint32_t slot_count;  // seats behind this were never used
  uint32_t reserved;
  Timeline timeline[kMaxTimelines];
  ProcessSlot slot[kMaxProcessSlots];
};

// Goes on to `wall`. Time never runs back: an earlier moment changes nothing.
void advance(TimeRegion& region, uint32_t timeline, uint64_t wall);

void claim_slot(TimeRegion& region, uint32_t slot, uint32_t timeline, int32_t pid, uint64_t space);
// At least how long, as the wall counts, until the seat's own time is there; 0 when it is.
uint64_t time_until(const TimeRegion& region, uint32_t slot, uint64_t own);
// When the seat's own time came to `own`; the lane's present for what is still to come.
uint64_t wall_time(const TimeRegion& region, uint32_t slot, uint64_t own);
// Busy time between `from` and the lane's present; `from` becomes where the count began.
uint64_t busy_since(const TimeRegion& region, uint32_t slot, uint64_t& from);

inline bool has_work(const ProcessSlot& slot) {
  return slot.until > slot.own;
}

}  // namespace gantry::sim
