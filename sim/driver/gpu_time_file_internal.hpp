// SPDX-License-Identifier: Apache-2.0
// The shared file of gpu_time.h: finds or creates it, locks it, leaves it.
#pragma once

#include "sim/driver/gpu_schedule_internal.hpp"

#include <stdint.h>

namespace gantry::sim {

enum class TimeFileMode : uint8_t { Make, Find };

struct OpenTimeFile {
  int fd;  // -1: no file
  TimeRegion* region;
  char path[256];
};

// Opens and maps the file of this libcuda. Also removes files of machines that no process uses any
// more.
OpenTimeFile open_time_file(const char* libcuda_file, TimeFileMode how);
void close_time_file(OpenTimeFile& file);
bool is_removed(const OpenTimeFile& file);  // its name was removed: other processes use a new file
// Removes the file if no other process uses it.
void leave_time_file(const OpenTimeFile& file);

// Locks the region for one process; waits at most a second for a stopped holder. Returns false if
// it must continue without the lock.
bool lock_region(int fd);
void unlock_region(int fd);
// A slot belongs to its process as long as this lock exists; the lock ends with the process.
bool lock_slot(int fd, uint32_t slot);
bool is_slot_locked(int fd, uint32_t slot);

}  // namespace gantry::sim
