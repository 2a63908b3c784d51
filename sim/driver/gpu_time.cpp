// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/gpu_time.h"

#include "sim/driver/gpu_time_file_internal.hpp"
#include "sim/driver/usage_internal.hpp"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

using namespace gantry::sim;  // NOLINT: the C functions below stand outside it

struct gantry_sim_time {
  pthread_mutex_t mutex;
  char* path;  // of the anchor
  uint32_t flags;
  bool opened;
  OpenTimeFile file;
  uint32_t slot[kMaxTimelines];  // number + 1; 0: none yet
};

namespace {

uint64_t monotonic_ns() {
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t latest(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

uint32_t timeline_of(uint32_t gpu, int32_t gi) {
  if (gpu >= kMaxTimedGpus || gi >= static_cast<int32_t>(kMaxTimedInstances)) return kMaxTimelines;
  return gpu * (1 + kMaxTimedInstances) + (gi < 0 ? 0 : static_cast<uint32_t>(gi) + 1);
}

void open_once(gantry_sim_time& time) {
  if (time.opened) return;
  const bool reads = (time.flags & GANTRY_SIM_TIME_READ) != 0;
  time.opened = !reads;  // a reader does not keep the file alive and opens it again next time
  if (reads && is_removed(time.file)) close_time_file(time.file);
  if (time.file.region == nullptr)
    time.file = open_time_file(time.path, reads ? TimeFileMode::Find : TimeFileMode::Make);
}

uint64_t speed_of(const gantry_sim_time& time) {
  const TimeRegion* region = time.file.region;
  const uint32_t speed = region == nullptr ? 1 : region->speed;
  return speed < 1 || speed > 100 ? 1 : speed;
}

uint64_t wall_now(const gantry_sim_time& time) {
  return monotonic_ns() * speed_of(time);
}

// Holds the process's and the machine's lock for a moment.
class LockedRegion {
 public:
  explicit LockedRegion(gantry_sim_time& time) : time_(time) {
    pthread_mutex_lock(&time.mutex);
    open_once(time);
    if (time.file.region != nullptr) locked_ = lock_region(time.file.fd);
  }
  ~LockedRegion() {
    if (locked_) unlock_region(time_.file.fd);
    pthread_mutex_unlock(&time_.mutex);
  }
  LockedRegion(const LockedRegion&) = delete;
  LockedRegion& operator=(const LockedRegion&) = delete;
  TimeRegion* region() const { return locked_ ? time_.file.region : nullptr; }

 private:
  gantry_sim_time& time_;
  bool locked_ = false;
};

// Frees the slots of dead processes, before time advances for them.
void clear_dead(gantry_sim_time& time, uint32_t timeline) {
  TimeRegion& region = *time.file.region;
  const uint32_t own = time.slot[timeline];
  for (uint32_t i = 0; i < region.slot_count && i < kMaxProcessSlots; ++i) {
    ProcessSlot& slot = region.slot[i];
    if (slot.used == 0 || slot.timeline != timeline || i + 1 == own || !has_work(slot)) continue;
    if (!is_slot_locked(time.file.fd, i)) slot.used = 0;
  }
}

void go_on(gantry_sim_time& time, uint32_t timeline) {
  clear_dead(time, timeline);
  advance(*time.file.region, timeline, wall_now(time));
}

bool claim_process_slot(gantry_sim_time& time, uint32_t timeline) {
  if (time.slot[timeline] != 0) return true;
  for (uint32_t i = 0; i < kMaxProcessSlots; ++i) {
    bool ours = false;
    for (const uint32_t slot : time.slot) ours = ours || slot == i + 1;
    if (ours || !lock_slot(time.file.fd, i)) continue;
    go_on(time, timeline);
    claim_slot(*time.file.region, i, timeline, getpid(), own_pid_namespace());
    time.slot[timeline] = i + 1;
    return true;
  }
  return false;
}

// The slot with everything accounted up to now; nullptr: the process has the GPU to itself.
ProcessSlot* current_slot(gantry_sim_time& time, const LockedRegion& held, uint32_t gpu, int32_t gi,
                          uint32_t& slot) {
  const uint32_t timeline = timeline_of(gpu, gi);
  if (held.region() == nullptr || timeline == kMaxTimelines || !claim_process_slot(time, timeline))
    return nullptr;
  go_on(time, timeline);
  slot = time.slot[timeline] - 1;
  return &held.region()->slot[slot];
}

}  // namespace

extern "C" {

struct gantry_sim_time* gantry_sim_time_open(const char* libcuda_file, uint32_t flags) {
  auto* time = static_cast<gantry_sim_time*>(calloc(1, sizeof(gantry_sim_time)));
  if (time == nullptr) return nullptr;
  pthread_mutex_init(&time->mutex, nullptr);
  time->flags = flags;
  time->file.fd = -1;
  time->path = strdup(libcuda_file);
  if (time->path != nullptr) return time;
  free(time);
  return nullptr;
}

void gantry_sim_time_close(struct gantry_sim_time* time) {
  if (time == nullptr) return;
  leave_time_file(time->file);
  close_time_file(time->file);
  free(time->path);
  free(time);
}

// The locks of the slots belong to the open file, which parent and child share: closing our copy
// does not release them.
void gantry_sim_time_after_fork(struct gantry_sim_time* time) {
  if (time == nullptr) return;
  pthread_mutex_init(&time->mutex, nullptr);
  close_time_file(time->file);
  memset(time->slot, 0, sizeof time->slot);
  time->opened = false;
}

uint64_t gantry_sim_time_wall(struct gantry_sim_time* time) {
  return time == nullptr ? monotonic_ns() : wall_now(*time);
}

void gantry_sim_time_sleep(struct gantry_sim_time* time, uint64_t wall_ns) {
  const uint64_t length = time == nullptr ? wall_ns : wall_ns / speed_of(*time);
  struct timespec left = {static_cast<time_t>(length / 1000000000U),
                          static_cast<long>(length % 1000000000U)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

uint64_t gantry_sim_time_now(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id) {
  if (time == nullptr) return monotonic_ns();
  const LockedRegion held(*time);
  uint32_t number = 0;
  const ProcessSlot* slot = current_slot(*time, held, gpu, gi_id, number);
  return slot == nullptr ? wall_now(*time) : slot->own;
}

uint64_t gantry_sim_time_run(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                             uint64_t not_before, uint64_t duration) {
  if (time == nullptr) return latest(monotonic_ns(), not_before) + duration;
  const LockedRegion held(*time);
  uint32_t number = 0;
  ProcessSlot* slot = current_slot(*time, held, gpu, gi_id, number);
  if (slot == nullptr) return latest(wall_now(*time), not_before) + duration;
  const uint64_t end = latest(slot->own, not_before) + duration;
  if (duration != 0) slot->until = latest(slot->until, end);
  return end;
}

uint64_t gantry_sim_time_left(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                              uint64_t own) {
  if (time != nullptr) {
    const LockedRegion held(*time);
    uint32_t number = 0;
    if (current_slot(*time, held, gpu, gi_id, number) != nullptr)
      return time_until(*held.region(), number, own);
  }
  const uint64_t now = gantry_sim_time_wall(time);
  return now >= own ? 0 : own - now;
}

uint64_t gantry_sim_time_when(struct gantry_sim_time* time, uint32_t gpu, int32_t gi_id,
                              uint64_t own) {
  if (time == nullptr) return own;
  const LockedRegion held(*time);
  uint32_t number = 0;
  if (current_slot(*time, held, gpu, gi_id, number) == nullptr) return own;
  return wall_time(*held.region(), number, own);
}

size_t gantry_sim_time_list(struct gantry_sim_time* time, uint64_t window_ns,
                            struct gantry_sim_time_use* rows, size_t capacity) {
  if (time == nullptr) return 0;
  size_t count = 0;
  {
    const LockedRegion held(*time);
    if (held.region() == nullptr) return 0;
    TimeRegion& region = *held.region();
    const uint64_t now = wall_now(*time);
    for (uint32_t i = 0; i < region.slot_count && i < kMaxProcessSlots; ++i) {
      ProcessSlot& slot = region.slot[i];
      if (slot.used == 0 || slot.timeline >= kMaxTimelines) continue;
      if (!is_slot_locked(time->file.fd, i)) {
        slot.used = 0;
        continue;
      }
      go_on(*time, slot.timeline);
      uint64_t from = now > window_ns ? now - window_ns : 0;
      gantry_sim_time_use row = {};
      row.window_busy_ns = busy_since(region, i, from);
      const uint64_t present = region.timeline[slot.timeline].wall;
      row.window_ns = present > from ? present - from : 0;
      row.gpu = slot.timeline / (1 + kMaxTimedInstances);
      row.gi_id = static_cast<int32_t>(slot.timeline % (1 + kMaxTimedInstances)) - 1;
      row.pid = slot.pid;
      row.busy_ns = slot.busy;
      if (count < capacity) {
        rows[count] = row;
        rows[count].pid = pid_in_own_namespace(row.pid, slot.space);
      }
      ++count;
    }
  }
  return count;
}

}  // extern "C"
