// SPDX-License-Identifier: Apache-2.0
// The settings of an administrator: persistence, compute mode, power limit, locked clocks,
// drain. Root only; every process of the machine sees the change.

#include "sim/libnvidia-ml/state_change_internal.hpp"

#include <unistd.h>

#define GANTRY_NVML_SETTING(branch, name, parameters) extern "C" nvmlReturn_t name parameters;
#include "sim/driver/nvml_settings.def"
#undef GANTRY_NVML_SETTING

using namespace gantry::sim::nvml;

namespace {

namespace settings_since {
#define GANTRY_NVML_SETTING(branch, name, parameters) constexpr uint32_t name = branch;
#include "sim/driver/nvml_settings.def"
#undef GANTRY_NVML_SETTING
}  // namespace settings_since

#define GANTRY_ENTER_SETTING(function)                                         \
  if (const nvmlReturn_t entered = enter(#function, settings_since::function); \
      entered != NVML_SUCCESS)                                                 \
  return entered

// One or two numbers of the state.
struct Setting {
  uint32_t gantry_sim_gpu_state::*first;
  uint32_t gantry_sim_gpu_state::*second;  // or nullptr
  uint32_t values[2];
};

nvmlReturn_t set_values(uint32_t gpu, Setting setting) {
  if (geteuid() != 0) return NVML_ERROR_NO_PERMISSION;
  const auto write = [](gantry_sim_gpu_state& value, bool&, void* argument) {
    const auto& wanted = *static_cast<Setting*>(argument);
    value.*wanted.first = wanted.values[0];
    if (wanted.second != nullptr) value.*wanted.second = wanted.values[1];
    return NVML_SUCCESS;
  };
  return change_gpu(gpu, write, &setting);
}

bool has_locked_clocks(const gantry_sim_gpu& card) {
  return card.nvml_architecture >= NVML_DEVICE_ARCH_VOLTA && card.clock_graphics_max != 0;
}

nvmlReturn_t lock_clocks(const Target& target, Setting setting) {
  if (!has_locked_clocks(*target.card)) return NVML_ERROR_NOT_SUPPORTED;
  const auto [low, high] = setting.values;
  if (high == 0 || low > high) return NVML_ERROR_INVALID_ARGUMENT;
  return set_values(target.gpu, setting);
}

nvmlReturn_t unlock_clocks(const Target& target, Setting setting) {
  if (!has_locked_clocks(*target.card)) return NVML_ERROR_NOT_SUPPORTED;
  return set_values(target.gpu, setting);
}

constexpr Setting graphics_lock(uint32_t low, uint32_t high) {
  return {&gantry_sim_gpu_state::graphics_lock_min_mhz,
          &gantry_sim_gpu_state::graphics_lock_max_mhz,
          {low, high}};
}

constexpr Setting memory_lock(uint32_t low, uint32_t high) {
  return {&gantry_sim_gpu_state::memory_lock_min_mhz,
          &gantry_sim_gpu_state::memory_lock_max_mhz,
          {low, high}};
}

// A GPU that drains has no handle, so these calls take its address.
bool find_address(const nvmlPciInfo_t& pci, uint32_t& out) {
  for (uint32_t gpu = 0; gpu < machine().gpu_count; ++gpu) {
    const auto& card = machine().gpu[gpu];
    if (card.domain != pci.domain || card.bus != pci.bus || card.device != pci.device) continue;
    out = gpu;
    return true;
  }
  return false;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device,
                                                        nvmlEnableState_t* mode) {
  GANTRY_ENTER_GPU(nvmlDeviceGetPersistenceMode, device);
  GANTRY_NEED(mode);
  *mode = gpu_now(target.gpu).persistence != 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device,
                                                        nvmlEnableState_t mode) {
  GANTRY_ENTER_GPU(nvmlDeviceSetPersistenceMode, device);
  if (mode != NVML_FEATURE_DISABLED && mode != NVML_FEATURE_ENABLED)
    return NVML_ERROR_INVALID_ARGUMENT;
  const uint32_t on = mode == NVML_FEATURE_ENABLED ? 1 : 0;
  return set_values(target.gpu, {&gantry_sim_gpu_state::persistence, nullptr, {on, 0}});
}

// A MIG device has the mode of its GPU.
GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetComputeMode, device);
  GANTRY_NEED(mode);
  *mode = static_cast<nvmlComputeMode_t>(gpu_now(target.gpu).compute_mode);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode) {
  GANTRY_ENTER_DEVICE(nvmlDeviceSetComputeMode, device);
  if (mode >= NVML_COMPUTEMODE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  if (mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD) return NVML_ERROR_NOT_SUPPORTED;  // until CUDA 8
  return set_values(
      target.gpu, {&gantry_sim_gpu_state::compute_mode, nullptr, {static_cast<uint32_t>(mode), 0}});
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device,
                                                             unsigned int milliwatts) {
  GANTRY_ENTER_GPU(nvmlDeviceSetPowerManagementLimit, device);
  const auto& card = *target.card;
  if (card.power_limit_mw == GANTRY_SIM_UNSET) return NVML_ERROR_NOT_SUPPORTED;
  const auto wanted = static_cast<int64_t>(milliwatts);
  if (wanted < card.power_min_mw || wanted > card.power_max_mw) return NVML_ERROR_INVALID_ARGUMENT;
  if (geteuid() != 0) return NVML_ERROR_NO_PERMISSION;
  const auto write = [](gantry_sim_gpu_state& value, bool&, void* limit) {
    value.power_limit_mw = static_cast<int32_t>(*static_cast<unsigned int*>(limit));
    return NVML_SUCCESS;
  };
  return change_gpu(target.gpu, write, &milliwatts);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int low_mhz,
                                                        unsigned int high_mhz) {
  GANTRY_ENTER_SETTING(nvmlDeviceSetGpuLockedClocks);
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  return lock_clocks(target, graphics_lock(low_mhz, high_mhz));
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
  GANTRY_ENTER_SETTING(nvmlDeviceResetGpuLockedClocks);
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  return unlock_clocks(target, graphics_lock(0, 0));
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device,
                                                           unsigned int low_mhz,
                                                           unsigned int high_mhz) {
  GANTRY_ENTER_SETTING(nvmlDeviceSetMemoryLockedClocks);
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  return lock_clocks(target, memory_lock(low_mhz, high_mhz));
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device) {
  GANTRY_ENTER_SETTING(nvmlDeviceResetMemoryLockedClocks);
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  return unlock_clocks(target, memory_lock(0, 0));
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_t* pci, nvmlEnableState_t drain) {
  GANTRY_ENTER_SETTING(nvmlDeviceModifyDrainState);
  GANTRY_NEED(pci);
  uint32_t gpu = 0;
  if (!find_address(*pci, gpu)) return NVML_ERROR_INVALID_ARGUMENT;
  if (machine().gpu[gpu].nvml_architecture < NVML_DEVICE_ARCH_PASCAL)
    return NVML_ERROR_NOT_SUPPORTED;
  if (geteuid() != 0) return NVML_ERROR_NO_PERMISSION;
  if (drain == NVML_FEATURE_ENABLED && gpu_now(gpu).persistence != 0) return NVML_ERROR_IN_USE;
  const uint32_t on = drain == NVML_FEATURE_ENABLED ? 1 : 0;
  return set_values(gpu, {&gantry_sim_gpu_state::draining, nullptr, {on, 0}});
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t* pci, nvmlEnableState_t* drain) {
  GANTRY_ENTER_SETTING(nvmlDeviceQueryDrainState);
  GANTRY_NEED(pci);
  GANTRY_NEED(drain);
  uint32_t gpu = 0;
  if (!find_address(*pci, gpu)) return NVML_ERROR_INVALID_ARGUMENT;
  *drain = gpu_now(gpu).draining != 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
