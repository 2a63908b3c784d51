// SPDX-License-Identifier: Apache-2.0
// Changes of MIG: mode, GPU instances, compute instances. Ids and placements are assigned like in
// the real driver.

#include "sim/libnvidia-ml/mig_placement_internal.hpp"
#include "sim/libnvidia-ml/state_change_internal.hpp"
#include "sim/libnvidia-ml/usage_internal.hpp"

#include <stdio.h>
#include <string.h>

using namespace gantry::sim::nvml;

namespace {

struct Change {
  uint32_t gpu;
  const gantry_sim_gpu* card;
  uint32_t mode;                          // wanted
  const gantry_sim_mig_profile* profile;  // of the new instance
  const nvmlGpuInstancePlacement_t* placement;
  uint32_t slices;        // of the new compute instance
  uint32_t gi_id, ci_id;  // in or out
};

// 7g is 0; halves are 1 and 2; quarters 3 to 6; single slices 7 to 13.
uint32_t instance_id(const gantry_sim_mig_profile& profile, uint32_t start) {
  if (profile.memory_slices >= 8) return 0;
  if (profile.memory_slices >= 4) return 1 + start / 4;
  if (profile.memory_slices >= 2) return 3 + start / 2;
  return 7 + start;
}

uint64_t fnv(uint64_t seed, const char* text) {
  uint64_t value = 1469598103934665603ULL ^ seed;
  for (; *text != '\0'; ++text)
    value = (value ^ static_cast<unsigned char>(*text)) * 1099511628211ULL;
  return value;
}

// The same instance of the same card always has the same name, as on real cards.
void print_mig_uuid(const gantry_sim_gpu& card, uint32_t gi, uint32_t ci, char (&out)[96]) {
  char text[128];
  snprintf(text, sizeof text, "%s/%u/%u", card.uuid, gi, ci);
  if (session().branch < 470) {
    snprintf(out, sizeof out, "MIG-%.80s", text);
    return;
  }
  const uint64_t high = fnv(1, text);
  const uint64_t low = fnv(2, text);
  snprintf(out, sizeof out, "MIG-%08x-%04x-5%03x-%04x-%012llx",
           static_cast<unsigned int>(high >> 32), static_cast<unsigned int>((high >> 16) & 0xFFFF),
           static_cast<unsigned int>(high & 0xFFF),
           static_cast<unsigned int>(0x8000 | ((low >> 48) & 0x3FFF)),
           static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFULL));
}

void number_devices(gantry_sim_gpu_state& value) {
  uint32_t index = 0;
  for (uint32_t gi = 0; gi < GANTRY_SIM_GI_IDS; ++gi) {
    for (auto& instance : value.mig) {
      if (instance.used == 0 || instance.gi_id != gi) continue;
      for (uint32_t i = 0; i < instance.ci_count; ++i) instance.ci[i].mig_index = index++;
    }
  }
}

gantry_sim_mig_instance* find(gantry_sim_gpu_state& value, uint32_t gi_id) {
  return const_cast<gantry_sim_mig_instance*>(find_instance(value, gi_id));
}

bool starts_at(const gantry_sim_mig_profile& profile, uint32_t start) {
  for (uint32_t i = 0; i < profile.placement_count; ++i) {
    if (profile.placement_start[i] == start) return true;
  }
  return false;
}

// The driver's choice for the next one: first the last place, then the upper half, then the lower.
bool choose_start(const gantry_sim_mig_profile& profile, uint8_t taken, uint32_t& start) {
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
    if (!is_free(at) || (found && (at >= 4) == (start >= 4))) continue;
    if (found && at < 4) continue;
    start = at;
    found = true;
  }
  return found;
}

nvmlReturn_t set_mode(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  const auto& change = *static_cast<Change*>(argument);
  if (value.mig_current == change.mode && value.mig_pending == change.mode) return NVML_SUCCESS;
  if (change.mode == 0) {
    for (const auto& instance : value.mig) {
      if (instance.used != 0) return NVML_ERROR_IN_USE;
    }
  }
  value.mig_current = value.mig_pending = change.mode;
  announce = true;
  return NVML_SUCCESS;
}

nvmlReturn_t add_instance(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  auto& change = *static_cast<Change*>(argument);
  const auto& profile = *change.profile;
  if (value.mig_current == 0) return NVML_ERROR_NOT_SUPPORTED;
  const uint8_t taken = taken_slices(*change.card, value);
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
  } else if (!choose_start(profile, taken, start)) {
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  }
  for (auto& instance : value.mig) {
    if (instance.used != 0) continue;
    instance = {};
    instance.used = 1;
    instance.gi_id = change.gi_id = instance_id(profile, start);
    instance.profile = static_cast<uint32_t>(&profile - change.card->mig_profile);
    instance.placement = start;
    ++value.mig_count;
    announce = true;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

nvmlReturn_t remove_instance(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  const auto& change = *static_cast<Change*>(argument);
  auto* instance = find(value, change.gi_id);
  if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
  if (instance->ci_count > 0) return NVML_ERROR_IN_USE;
  *instance = {};
  if (value.mig_count > 0) --value.mig_count;
  number_devices(value);
  announce = true;
  return NVML_SUCCESS;
}

bool id_taken(const gantry_sim_mig_instance& instance, uint32_t ci_id) {
  for (uint32_t i = 0; i < instance.ci_count; ++i) {
    if (instance.ci[i].ci_id == ci_id) return true;
  }
  return false;
}

nvmlReturn_t add_compute(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  auto& change = *static_cast<Change*>(argument);
  auto* instance = find(value, change.gi_id);
  const auto* profile = instance == nullptr ? nullptr : profile_of(*change.card, *instance);
  if (profile == nullptr) return NVML_ERROR_NOT_FOUND;
  if (!compute_profile_fits(profile->slices, change.slices)) return NVML_ERROR_NOT_SUPPORTED;
  uint32_t used = 0;
  for (uint32_t i = 0; i < instance->ci_count; ++i) used += instance->ci[i].slices;
  if (used + change.slices > profile->slices ||
      instance->ci_count >= GANTRY_SIM_MAX_MIG_INSTANCES) {
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  }
  uint32_t ci_id = 0;
  while (id_taken(*instance, ci_id)) ++ci_id;
  auto& compute = instance->ci[instance->ci_count++];
  compute = {};
  compute.ci_id = change.ci_id = ci_id;
  compute.slices = change.slices;
  print_mig_uuid(*change.card, change.gi_id, ci_id, compute.uuid);
  number_devices(value);
  announce = true;
  return NVML_SUCCESS;
}

nvmlReturn_t remove_compute(gantry_sim_gpu_state& value, bool& announce, void* argument) {
  const auto& change = *static_cast<Change*>(argument);
  auto* instance = find(value, change.gi_id);
  if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
  for (uint32_t i = 0; i < instance->ci_count; ++i) {
    if (instance->ci[i].ci_id != change.ci_id) continue;
    memmove(&instance->ci[i], &instance->ci[i + 1],
            (instance->ci_count - i - 1) * sizeof instance->ci[0]);
    --instance->ci_count;
    number_devices(value);
    announce = true;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t create_instance(nvmlDevice_t device, unsigned int profile_id,
                             const nvmlGpuInstancePlacement_t* placement, nvmlGpuInstance_t* out) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  Change change{target.gpu, target.card, 0, profile_by_id(*target.card, profile_id),
                placement,  0,           0, 0};
  if (target.card->mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (change.profile == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const auto result = change_gpu(target.gpu, add_instance, &change); result != NVML_SUCCESS) {
    return result;
  }
  *out = instance_handle(target.gpu, change.gi_id);
  return NVML_SUCCESS;
}

nvmlReturn_t create_compute(nvmlGpuInstance_t instance, unsigned int profile_id,
                            nvmlComputeInstance_t* out) {
  InstanceTarget target{};
  if (const auto result = resolve_instance(instance, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  Change change{target.gpu,
                target.card,
                0,
                nullptr,
                nullptr,
                compute_profile_slices(profile_id),
                target.gi_id,
                0};
  if (const auto result = change_gpu(target.gpu, add_compute, &change); result != NVML_SUCCESS) {
    return result;
  }
  *out = compute_handle(target.gpu, target.gi_id, change.ci_id);
  return NVML_SUCCESS;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                                nvmlReturn_t* activation) {
  GANTRY_ENTER_GPU(nvmlDeviceSetMigMode, device);
  if (activation == nullptr || mode > NVML_DEVICE_MIG_ENABLE) return NVML_ERROR_INVALID_ARGUMENT;
  if (target.card->mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (MemoryUses(target).size() > 0) return NVML_ERROR_IN_USE;
  Change change{target.gpu, target.card, mode, nullptr, nullptr, 0, 0, 0};
  *activation = change_gpu(target.gpu, set_mode, &change);
  return *activation == NVML_ERROR_IN_USE ? NVML_SUCCESS : *activation;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id,
                                                       nvmlGpuInstance_t* instance) {
  GANTRY_ENTER(nvmlDeviceCreateGpuInstance);
  return create_instance(device, profile_id, nullptr, instance);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(
    nvmlDevice_t device, unsigned int profile_id, const nvmlGpuInstancePlacement_t* placement,
    nvmlGpuInstance_t* instance) {
  GANTRY_ENTER(nvmlDeviceCreateGpuInstanceWithPlacement);
  GANTRY_NEED(placement);
  return create_instance(device, profile_id, placement, instance);
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
  GANTRY_ENTER(nvmlGpuInstanceDestroy);
  InstanceTarget target{};
  if (const auto result = resolve_instance(instance, target); result != NVML_SUCCESS) return result;
  Change change{target.gpu, target.card, 0, nullptr, nullptr, 0, target.gi_id, 0};
  return change_gpu(target.gpu, remove_instance, &change);
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance,
                                                                unsigned int profile_id,
                                                                nvmlComputeInstance_t* compute) {
  GANTRY_ENTER(nvmlGpuInstanceCreateComputeInstance);
  return create_compute(instance, profile_id, compute);
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t instance, unsigned int profile_id,
    const nvmlComputeInstancePlacement_t* placement, nvmlComputeInstance_t* compute) {
  GANTRY_ENTER(nvmlGpuInstanceCreateComputeInstanceWithPlacement);
  GANTRY_NEED(placement);
  return create_compute(instance, profile_id, compute);
}

GANTRY_EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute) {
  GANTRY_ENTER(nvmlComputeInstanceDestroy);
  InstanceTarget target{};
  if (const auto result = resolve_compute(compute, target); result != NVML_SUCCESS) return result;
  const Target device{target.gpu, target.card, true, target.gi_id, target.ci_id};
  for (const auto& use : MemoryUses(device)) {
    if (use.ci_id == static_cast<int32_t>(target.ci_id)) return NVML_ERROR_IN_USE;
  }
  Change change{target.gpu, target.card, 0, nullptr, nullptr, 0, target.gi_id, target.ci_id};
  return change_gpu(target.gpu, remove_compute, &change);
}
