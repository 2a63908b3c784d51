// SPDX-License-Identifier: Apache-2.0
// The simulated NVML's own state and the steps every entry point begins with.
#pragma once

#include "gpu/abi/nvml.h"
#include "sim/driver/image.h"
#include "sim/driver/library.h"
#include "sim/driver/library_internal.hpp"

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define GANTRY_EXPORT extern "C" __attribute__((visibility("default")))

// Handles are addresses in fixed tables, so a stale or invalid handle is recognised and a thread
// never sees a freed one. Ids of instances fit: NVIDIA's go up to 14.
#define GANTRY_SIM_GI_IDS 16U
#define GANTRY_SIM_CI_IDS 8U

struct nvmlDevice_st {
  uint8_t unused;
};
struct nvmlGpuInstance_st {
  uint8_t unused;
};
struct nvmlComputeInstance_st {
  uint8_t unused;
};

namespace gantry::sim::nvml {

// The first driver branch that has each function, from the list of functions.
namespace since {
#define GANTRY_NVML(branch, name, parameters) inline constexpr uint32_t name = branch;
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML
}  // namespace since

// The result of nvmlInit; it does not change until the last nvmlShutdown.
struct Session {
  int32_t users;                             // nvmlInit minus nvmlShutdown
  uint32_t branch;                           // 580 of "580.159.04"
  uint32_t count;                            // GPUs this process may see
  uint32_t order[GANTRY_SIM_MAX_GPUS];       // NVML index -> GPU of the machine
  nvmlReturn_t access[GANTRY_SIM_MAX_GPUS];  // why a handle is refused, by GPU of the machine
};
const Session& session();
const gantry_sim_machine& machine();
const gantry_sim_state& state();

// A consistent copy of the changing state of a GPU.
inline gantry_sim_gpu_state gpu_now(uint32_t gpu) {
  gantry_sim_gpu_state now = {};
  gantry_sim_read_gpu_state(gpu, &now);
  return now;
}

// The position of a handle in a table; false if it is not there. Compared as numbers, because a
// foreign pointer can have any value.
template <typename Handle>
bool find_position(const Handle* handle, const Handle* table, size_t count, size_t& out) {
  const auto at = reinterpret_cast<uintptr_t>(handle);
  const auto begin = reinterpret_cast<uintptr_t>(table);
  if (at < begin || at >= begin + count * sizeof(Handle)) return false;
  out = (at - begin) / sizeof(Handle);
  return true;
}

// Microseconds since 1970.
inline unsigned long long wall_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<unsigned long long>(now.tv_sec) * 1000000ULL +
         static_cast<unsigned long long>(now.tv_nsec) / 1000ULL;
}

// A value that the machine does not have is 0 there: the card does not support the question.
inline nvmlReturn_t give_positive(uint32_t value, unsigned int* out) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (value == 0) return NVML_ERROR_NOT_SUPPORTED;
  *out = value;
  return NVML_SUCCESS;
}

// Checks that NVML is initialised, that the machine's driver has the function, and that no fault is
// injected.
nvmlReturn_t enter(const char* function, uint32_t branch);
nvmlReturn_t check_session(uint32_t branch);  // the parts of enter() around the faults
nvmlReturn_t check_driver_loaded();

// A GPU, or a MIG device on it.
struct Target {
  uint32_t gpu;
  const gantry_sim_gpu* card;
  bool mig;
  uint32_t gi_id, ci_id;  // when mig
};
enum class Reach { Identity, Live };  // a lost GPU still has its identity, but nothing else

nvmlReturn_t resolve(nvmlDevice_t device, Target& target, Reach reach = Reach::Live);
// The same, refusing MIG devices with `otherwise`.
nvmlReturn_t resolve_gpu(nvmlDevice_t device, Target& target, Reach reach = Reach::Live,
                         nvmlReturn_t otherwise = NVML_ERROR_NOT_SUPPORTED);

// The GPU of a handle, GANTRY_SIM_MAX_GPUS if it is of none.
uint32_t gpu_of(nvmlDevice_t device);

nvmlDevice_t gpu_handle(uint32_t gpu);
nvmlDevice_t mig_handle(uint32_t gpu, uint32_t gi_id, uint32_t ci_id);
nvmlReturn_t open_gpu(uint32_t gpu, nvmlDevice_t* device);

unsigned long long ecc_errors(const gantry_sim_gpu_state& now, nvmlMemoryErrorType_t error,
                              nvmlEccCounterType_t counter);
// Millijoules since the machine started; false where the card does not count them.
bool energy_of(const Target& target, unsigned long long& millijoules);
nvmlReturn_t clear_ecc(uint32_t gpu, nvmlEccCounterType_t counter);
uint32_t nvlink_version(const gantry_sim_gpu& card);
uint32_t nvlink_mbps(const gantry_sim_gpu& card);  // one link, one direction
bool nvlink_active(const gantry_sim_gpu& card, uint32_t link);
void drop_event_sets();
void fill_pci(const gantry_sim_gpu& card, nvmlPciInfo_t& pci);
nvmlReturn_t copy_text(const char* text, char* out, unsigned int length);

}  // namespace gantry::sim::nvml

// Begins every entry point.
#define GANTRY_ENTER(function)                                                     \
  if (const nvmlReturn_t entered =                                                 \
          gantry::sim::nvml::enter(#function, gantry::sim::nvml::since::function); \
      entered != NVML_SUCCESS)                                                     \
  return entered

// Begins those about a device: `target` is declared, and every pointer argument checked.
#define GANTRY_ENTER_DEVICE(function, device, ...)                               \
  GANTRY_ENTER(function);                                                        \
  gantry::sim::nvml::Target target{};                                            \
  if (const nvmlReturn_t resolved =                                              \
          gantry::sim::nvml::resolve(device, target __VA_OPT__(, ) __VA_ARGS__); \
      resolved != NVML_SUCCESS)                                                  \
  return resolved
#define GANTRY_ENTER_GPU(function, device, ...)                                      \
  GANTRY_ENTER(function);                                                            \
  gantry::sim::nvml::Target target{};                                                \
  if (const nvmlReturn_t resolved =                                                  \
          gantry::sim::nvml::resolve_gpu(device, target __VA_OPT__(, ) __VA_ARGS__); \
      resolved != NVML_SUCCESS)                                                      \
  return resolved
#define GANTRY_NEED(pointer) \
  if ((pointer) == nullptr) return NVML_ERROR_INVALID_ARGUMENT
