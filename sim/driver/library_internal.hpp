// SPDX-License-Identifier: Apache-2.0
// Private to the code that is compiled into each simulated library. libc only: no libstdc++, no
// pthread (its symbols moved in glibc 2.34), no stat (2.33).
#pragma once

#include "sim/driver/image.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace gantry::sim {

// The paths of these libraries behind the fence (FENCE_REAL_CUDA, FENCE_REAL_NVML).
inline constexpr const char* kFencedCuda = "/run/gantry/fence/cuda";
inline constexpr const char* kFencedNvml = "/run/gantry/fence/nvml";
inline constexpr const char* kFencedMachine = "/run/gantry/fence/machine";

// A mutex of one word, so that it needs no constructor and no symbol newer than the floor.
class Lock {
 public:
  void lock();
  void unlock();

 private:
  int32_t word_ = 0;  // 0 free, 1 held, 2 held and waited for
};

class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

// Whether every count and string of the machine part is within its bounds. The rest of the library
// relies on it and does not check again.
bool is_machine_valid(const gantry_sim_machine& machine);

// The state changes while we run, so it is corrected instead of checked: counts and profiles stay
// inside their arrays, names get a terminating NUL.
void clamp_gpu_state(gantry_sim_gpu_state& gpu);
void clamp_state(gantry_sim_state& state);

// Copies `size` bytes of the state while no process writes it. If a writer does not finish within
// about 10 ms, copies the current content.
void read_state(const gantry_sim_state& state, const void* from, void* to, size_t size);

// The errno of opening a device node of the simulated machine, 0 if it can be used: ENOENT missing,
// EACCES mode or group, EPERM denied by the cgroup, ENXIO wrong numbers.
enum class Access { ReadWrite, Read };
int device_error(const char* node, uint32_t major_number, uint32_t minor_number,
                 Access access = Access::ReadWrite);
bool has_capability(unsigned int capability);  // effective, e.g. CAP_SYS_ADMIN
int control_error();
int gpu_error(uint32_t gpu);

// Reads a whole small file; NUL-terminated. -1 if it cannot be opened.
ssize_t read_small_file(const char* path, char* buffer, size_t capacity);

// One call of an entry point, for the faults about it.
struct FaultCall {
  const char* function;
  const uint64_t* calls;          // which call of the function on the machine; nullptr: count here
  const uint64_t* all_mig_calls;  // which call that changes MIG; nullptr: the function does not
};
inline constexpr const char* kAllMigFunctions = "mig";

// Injected misbehaviour: sleeps, returns the result (0 = carry on), and sets `action` to what else
// the fault does (gantry_sim_fault_action).
int run_faults(const FaultCall& call, uint32_t* action);

void sleep_us(uint64_t microseconds);
uint64_t now_us();  // CLOCK_MONOTONIC

}  // namespace gantry::sim
