// SPDX-License-Identifier: Apache-2.0
// The file behind gpu_time.h: found or made, locked, left.
#pragma once

#include "sim/driver/gpu_schedule_internal.hpp"

#include <stdint.h>

namespace gantry::sim {

enum class TimeFileMode : uint8_t { Make, Find };

struct OpenTimeFile {
  int fd;  // -1: there is none
  TimeRegion* region;
  char path[256];
};

// The file of this libcuda, mapped. Files of machines that nobody uses any more are removed on the
// way.
OpenTimeFile open_time_file(const char* libcuda_file, TimeFileMode how);
void close_time_file(OpenTimeFile& file);
bool is_removed(const OpenTimeFile& file);  // its name is gone: others use another one
// Removes the file when nobody else is in it.
void leave_time_file(const OpenTimeFile& file);

// One process at a time; a stopped holder is not waited for longer than a second. False: go on
// without.
bool lock_region(int fd);
void unlock_region(int fd);
// A seat is its holder's as long as this lock, which ends with the process.
bool lock_slot(int fd, uint32_t slot);
bool is_slot_locked(int fd, uint32_t slot);

}  // namespace gantry::sim
