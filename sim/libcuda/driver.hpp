// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver's state in one process. One lock protects all of it: an entry point
// holds the lock all the time, except while it waits or calls back into the program.
#pragma once

#include "gpu/abi/cuda.h"
#include "sim/driver/gpu_time.h"
#include "sim/driver/image.h"
#include "sim/driver/library.h"
#include "sim/driver/library_internal.hpp"
#include "sim/driver/usage.h"
#include "sim/libcuda/objects.hpp"

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

// A GPU, or the one compute instance of a GPU in MIG mode, as CUDA numbers them.
struct Device {
  uint32_t gpu;    // of the machine
  int32_t gi, ci;  // -1: the whole GPU
  const gantry_sim_gpu* card;
  uint32_t multiprocessors;
  uint64_t total_bytes;
  uint64_t limit_bytes;  // of this process under MPS; 0: none
  uint64_t held_bytes;   // by this process
  char name[160];
  CUuuid uuid, gpu_uuid;  // differ for MIG
  Context* primary;
  uint32_t primary_uses;
  uint32_t primary_flags;
  Pool* default_pool;
  Pool* pool;
  uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
};

// CU_COMPUTEMODE_*, as `nvidia-smi -c` last set it.
inline uint32_t compute_mode_of(const Device& device) {
  gantry_sim_gpu_state now = {};
  gantry_sim_read_gpu_state(device.gpu, &now);
  return now.compute_mode;
}

// This process as a client of the MPS daemon, or as its server.
struct Mps {
  bool serves = false;
  int daemon = -1;      // the connection of a client
  uint32_t server = 0;  // as the accounting numbers it; 0: no MPS
};

struct Driver {
  Lock lock;
  uint32_t initialised = 0;        // cuInit succeeded
  uint32_t forked = 0;             // in a forked child of a process that called cuInit
  CUresult sticky = CUDA_SUCCESS;  // a fault on the GPU ends all work of the process
  const gantry_sim_machine* machine = nullptr;
  gantry_sim_usage* usage = nullptr;
  gantry_sim_time* time = nullptr;
  int device_count = 0;
  Device device[GANTRY_SIM_MAX_GPUS] = {};
  uint64_t next_id = 0;  // of contexts, streams, buffers
  Mps mps;
};
extern Driver driver;

enum class Phase : uint8_t { Early, Normal };
enum class DefaultStream : uint8_t { Legacy, PerThread };

// The steps around every entry point: injected faults, the checks for cuInit and fork, the lock.
class Call {
 public:
  Call(const char* symbol, Phase phase, DefaultStream default_stream);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  CUresult refused() const { return refused_; }

 private:
  CUresult refused_;
  bool locked_ = false;
};

// Releases the lock while this thread waits or runs code of the program.
class DriverUnlock {
 public:
  DriverUnlock() { driver.lock.unlock(); }
  ~DriverUnlock() { driver.lock.lock(); }
  DriverUnlock(const DriverUnlock&) = delete;
  DriverUnlock& operator=(const DriverUnlock&) = delete;
};

// The stream that 0 means to the caller of this entry point.
DefaultStream default_stream();

// nullptr if there is no such device.
Device* device_at(CUdevice ordinal);

// For cuInit: fills driver.device from the machine, the visible nodes and CUDA_VISIBLE_DEVICES.
CUresult find_devices();

// The error if no work is possible on a device: lost, driver unloaded, reset required.
CUresult device_failure(const Device& device);

// Device memory, charged to the process on the card or MIG instance. Returns
// CUDA_ERROR_OUT_OF_MEMORY if it does not fit.
CUresult charge(Device& device, uint64_t bytes);
void uncharge(Device& device, uint64_t bytes);
// The memory that the process may still allocate on the device.
uint64_t free_bytes(const Device& device);

uint64_t context_bytes(const Device& device);

}  // namespace gantry::sim::cuda
