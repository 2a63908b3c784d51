// SPDX-License-Identifier: Apache-2.0
// Changes of MIG: mode and GPU instances. Ids and placements are assigned like in the real driver.

#include "sim/libnvidia-ml/clients_internal.hpp"
#include "sim/libnvidia-ml/mig_calls_internal.hpp"
#include "sim/libnvidia-ml/mig_placement_internal.hpp"
#include "sim/libnvidia-ml/state_change_internal.hpp"
#include "sim/libnvidia-ml/usage_internal.hpp"

#include <string.h>

using namespace gantry::sim::nvml;

namespace {

struct ModeChange {
  uint32_t wanted;
  nvmlReturn_t obstacle;  // why it stays pending
};

struct InstanceChange {
  const gantry_sim_gpu* card;
  const gantry_sim_mig_profile* profile;        // of a new instance
  const nvmlGpuInstancePlacement_t* placement;  // or nullptr: the driver chooses
  uint32_t gi_id;                               // in or out
};

// The whole card is 0; halves are 1 and 2; quarters 3 to 6; eighths 7 to 14.
uint32_t instance_id(const gantry_sim_gpu& card, const gantry_sim_mig_profile& profile,
                     uint32_t start) {
  const uint32_t parts = memory_slices(card) / profile.memory_slices;
  return parts - 1 + start / profile.memory_slices;
}

bool starts_at(const gantry_sim_mig_profile& profile, uint32_t start) {
  for (uint32_t i = 0; i < profile.placement_count; ++i) {
    if (profile.placement_start[i] == start) return true;
  }
  return false;
}

// The driver's choice for the next one: on cards with seven compute slices first the last place,
// then the upper half, then the lower; on those with four (A30, RTX PRO 6000) the first place.
bool choose_start(const gantry_sim_gpu& card, const gantry_sim_mig_profile& profile, uint32_t taken,
                  uint32_t& start) {
  if (compute_slices(card) <= 4) return free_placement(profile, taken, start);
  const uint32_t half = memory_slices(card) / 2;
  const auto is_free = [&](uint32_t at) {
    return (slice_mask(at, profile.memory_slices) & taken) == 0;
  };
  const uint32_t count = profile.placement_count;
  if (count > 1 && is_free(profile.placement_start[count - 1])) {
    start = profile.placement_start[count - 1];
    return true;
  }
  bool found = false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = profile.placement_start[i];
    if (!is_free(at) || (found && (at >= half) == (start >= half))) continue;
    if (found && at < half) continue;
    start = at;
    found = true;
  }
  return found;
}

bool has_instances(const gantry_sim_gpu_state& value) {
  for (const auto& instance : value.mig) {
    if (instance.used != 0) return true;
  }
  return false;
}

// With an obstacle the mode stays pending until a reset, as on Ampere.
nvmlReturn_t set_mode(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  const auto& change = *static_cast<ModeChange*>(argument);
  if (value.mig_current == change.wanted && value.mig_pending == change.wanted) return NVML_SUCCESS;
  if (change.wanted == 0 && has_instances(value)) return NVML_ERROR_IN_USE;
  value.mig_pending = change.wanted;
  if (change.obstacle != NVML_SUCCESS && value.mig_current != change.wanted) return NVML_SUCCESS;
  announce = value.mig_current != change.wanted;
  value.mig_current = change.wanted;
  return NVML_SUCCESS;
}

// The driver resets an Ampere card to switch it, which it cannot do while somebody has the card
// open, nor in a guest. Later cards switch at once.
nvmlReturn_t activation_obstacle(const Target& target) {
  if (target.card->nvml_architecture >= NVML_DEVICE_ARCH_HOPPER) return NVML_SUCCESS;
  if (MemoryUses(target).size() > 0 || has_other_session(target.gpu)) return NVML_ERROR_IN_USE;
  return strcmp(target.card->virtualization, "Pass-Through") == 0 ? NVML_ERROR_RESET_REQUIRED
                                                                  : NVML_SUCCESS;
}

nvmlReturn_t set_mig_mode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t* activation) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  if (activation == nullptr || mode > NVML_DEVICE_MIG_ENABLE) return NVML_ERROR_INVALID_ARGUMENT;
  if (target.card->mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  ModeChange change{mode, activation_obstacle(target)};
  if (target.card->nvml_architecture >= NVML_DEVICE_ARCH_HOPPER && MemoryUses(target).size() > 0)
    return NVML_ERROR_IN_USE;
  *activation = change_gpu(target.gpu, set_mode, &change);
  if (*activation == NVML_ERROR_IN_USE) return NVML_SUCCESS;
  if (*activation != NVML_SUCCESS) return *activation;
  const auto now = gpu_now(target.gpu);
  if (now.mig_current != now.mig_pending) *activation = change.obstacle;
  return NVML_SUCCESS;
}

nvmlReturn_t add_instance(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  auto& change = *static_cast<InstanceChange*>(argument);
  const auto& profile = *change.profile;
  if (value.mig_current == 0) return NVML_ERROR_NOT_SUPPORTED;
  const uint32_t taken = taken_slices(*change.card, value);
  if (remaining_instances(*change.card, value, profile) == 0)
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  uint32_t start = 0;
  if (change.placement != nullptr) {
    start = change.placement->start;
    if (!starts_at(profile, start) || change.placement->size != profile.memory_slices) {
      return NVML_ERROR_INVALID_ARGUMENT;
    }
    if ((slice_mask(start, profile.memory_slices) & taken) != 0)
      return NVML_ERROR_INSUFFICIENT_RESOURCES;
  } else if (!choose_start(*change.card, profile, taken, start)) {
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  }
  for (auto& instance : value.mig) {
    if (instance.used != 0) continue;
    instance = {};
    instance.used = 1;
    instance.gi_id = change.gi_id = instance_id(*change.card, profile, start);
    instance.profile = static_cast<uint32_t>(&profile - change.card->mig_profile);
    instance.placement = start;
    ++value.mig_count;
    announce = true;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

nvmlReturn_t remove_instance(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  const auto& change = *static_cast<InstanceChange*>(argument);
  auto* instance = find_instance(value, change.gi_id);
  if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
  if (instance->ci_count > 0) return NVML_ERROR_IN_USE;
  *instance = {};
  if (value.mig_count > 0) --value.mig_count;
  number_mig_devices(value);
  announce = true;
  return NVML_SUCCESS;
}

nvmlReturn_t create_instance(nvmlDevice_t device, unsigned int profile_id,
                             const nvmlGpuInstancePlacement_t* placement, nvmlGpuInstance_t* out,
                             MigCall& call) {
  Target target{};
  call.value = static_cast<int32_t>(profile_id);
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  InstanceChange change{target.card, profile_by_id(*target.card, profile_id), placement, 0};
  if (target.card->mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (change.profile == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const auto result = change_gpu(target.gpu, add_instance, &change); result != NVML_SUCCESS) {
    return result;
  }
  *out = instance_handle(target.gpu, change.gi_id);
  call.gi_id = static_cast<int32_t>(change.gi_id);
  return NVML_SUCCESS;
}

nvmlReturn_t destroy_instance(nvmlGpuInstance_t instance) {
  InstanceTarget target{};
  if (const auto result = resolve_instance(instance, target); result != NVML_SUCCESS) return result;
  InstanceChange change{target.card, nullptr, nullptr, target.gi_id};
  return change_gpu(target.gpu, remove_instance, &change);
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                                nvmlReturn_t* activation) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_SET_MODE, nvmlDeviceSetMigMode, device);
  call.value = static_cast<int32_t>(mode);
  return end_mig_call(call, set_mig_mode(device, mode, activation));
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id,
                                                       nvmlGpuInstance_t* instance) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_CREATE, nvmlDeviceCreateGpuInstance, device);
  return end_mig_call(call, create_instance(device, profile_id, nullptr, instance, call));
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(
    nvmlDevice_t device, unsigned int profile_id, const nvmlGpuInstancePlacement_t* placement,
    nvmlGpuInstance_t* instance) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_CREATE_PLACED, nvmlDeviceCreateGpuInstanceWithPlacement, device);
  if (placement == nullptr) return end_mig_call(call, NVML_ERROR_INVALID_ARGUMENT);
  return end_mig_call(call, create_instance(device, profile_id, placement, instance, call));
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
  GANTRY_BEGIN_MIG(GANTRY_SIM_MIG_DESTROY, nvmlGpuInstanceDestroy, instance);
  return end_mig_call(call, destroy_instance(instance));
}
