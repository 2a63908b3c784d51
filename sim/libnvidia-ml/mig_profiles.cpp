// SPDX-License-Identifier: Apache-2.0
// Profiles a card offers, and where instances of them may begin.

#include "sim/libnvidia-ml/mig_placement_internal.hpp"

#include <stdio.h>
#include <string.h>

namespace gantry::sim::nvml {

uint32_t compute_profile_number(uint32_t slices) {
  switch (slices) {
    case 1: return NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE;
    case 2: return NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE;
    case 3: return NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE;
    case 4: return NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE;
    case 6: return NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE;
    case 7: return NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE;
    case 8: return NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE;
    default: return NVML_COMPUTE_INSTANCE_PROFILE_COUNT;
  }
}

uint32_t compute_profile_slices(uint32_t number) {
  for (uint32_t slices = 1; slices <= 8; ++slices) {
    if (compute_profile_number(slices) == number) return slices;
  }
  return 0;
}

bool compute_profile_fits(uint32_t instance_slices, uint32_t slices) {
  if (slices == 0 || slices > instance_slices) return false;
  return !(instance_slices == 4 && slices == 3);  // 4g has 1c, 2c and itself
}

}  // namespace gantry::sim::nvml

using namespace gantry::sim::nvml;

namespace {

template <typename Info>
void fill_profile(const gantry_sim_mig_profile& profile, Info& info) {
  info.id = profile.id;
  info.sliceCount = profile.slices;
  info.instanceCount = profile.instances;
  info.multiprocessorCount = profile.multiprocessors;
  info.copyEngineCount = profile.copy_engines;
  info.decoderCount = profile.decoders;
  info.encoderCount = profile.encoders;
  info.jpegCount = profile.jpegs;
  info.ofaCount = profile.ofas;
  info.memorySizeMB = profile.memory_mib;
}

// The caller's struct is of the version it says; the name begins with "MIG ".
nvmlReturn_t fill_versioned(const gantry_sim_mig_profile* profile,
                            nvmlGpuInstanceProfileInfo_v2_t* info) {
  if (profile == nullptr) return NVML_ERROR_NOT_SUPPORTED;
  if (info->version == nvmlGpuInstanceProfileInfo_v2) {
    *info = {};
    fill_profile(*profile, *info);
    info->version = nvmlGpuInstanceProfileInfo_v2;
    snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
    return NVML_SUCCESS;
  }
  if (info->version != nvmlGpuInstanceProfileInfo_v3) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlGpuInstanceProfileInfo_v3_t third{};
  fill_profile(*profile, third);
  third.version = nvmlGpuInstanceProfileInfo_v3;
  snprintf(third.name, sizeof third.name, "MIG %s", profile->name);
  memcpy(static_cast<void*>(info), &third, sizeof third);
  return NVML_SUCCESS;
}

nvmlReturn_t placements_of(nvmlDevice_t device, unsigned int profile_id,
                           nvmlGpuInstancePlacement_t* placements, unsigned int* count) {
  Target target{};
  if (const auto result = resolve_gpu(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(count);
  if (target.card->mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  const auto* profile = profile_by_id(*target.card, profile_id);
  if (profile == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (placements != nullptr) {
    if (*count < profile->placement_count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < profile->placement_count; ++i) {
      placements[i] = {profile->placement_start[i], profile->memory_slices};
    }
  }
  *count = profile->placement_count;
  return NVML_SUCCESS;
}

// A compute profile of an instance; `slices` 0 when the instance does not have it.
struct ComputeProfile {
  const gantry_sim_mig_profile* instance;
  uint32_t slices;
};

nvmlReturn_t find_compute_profile(nvmlGpuInstance_t handle, unsigned int number,
                                  InstanceTarget& target, ComputeProfile& out) {
  if (const auto result = resolve_instance(handle, target); result != NVML_SUCCESS) return result;
  const auto now = gpu_now(target.gpu);
  const auto* instance = find_instance(now, target.gi_id);
  out.instance = instance == nullptr ? nullptr : profile_of(*target.card, *instance);
  if (out.instance == nullptr) return NVML_ERROR_NOT_FOUND;
  if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  out.slices = compute_profile_slices(number);
  return compute_profile_fits(out.instance->slices, out.slices) ? NVML_SUCCESS
                                                                : NVML_ERROR_NOT_SUPPORTED;
}

template <typename Info>
void fill_compute(const ComputeProfile& from, Info& info) {
  const auto& profile = *from.instance;
  info.id = compute_profile_number(from.slices);
  info.sliceCount = from.slices;
  info.instanceCount = profile.slices / from.slices;
  info.multiprocessorCount = profile.multiprocessors * from.slices / profile.slices;
  info.sharedCopyEngineCount = profile.copy_engines;
  info.sharedDecoderCount = profile.decoders;
  info.sharedEncoderCount = profile.encoders;
  info.sharedJpegCount = profile.jpegs;
  info.sharedOfaCount = profile.ofas;
}

void compute_name(const ComputeProfile& from, char* out, size_t size) {
  char profile[40];
  print_compute_profile(*from.instance, from.slices, profile, sizeof profile);
  snprintf(out, size, "MIG %s", profile);
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device,
                                                               unsigned int profile,
                                                               nvmlGpuInstanceProfileInfo_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuInstanceProfileInfo, device);
  GANTRY_NEED(info);
  if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  const auto* found = profile_by_number(*target.card, profile);
  if (found == nullptr) return NVML_ERROR_NOT_SUPPORTED;
  *info = {};
  fill_profile(*found, *info);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(
    nvmlDevice_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_v2_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuInstanceProfileInfoV, device);
  GANTRY_NEED(info);
  if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return fill_versioned(profile_by_number(*target.card, profile), info);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(
    nvmlDevice_t device, unsigned int profile_id, nvmlGpuInstanceProfileInfo_v2_t* info) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuInstanceProfileInfoByIdV, device);
  GANTRY_NEED(info);
  return fill_versioned(profile_by_id(*target.card, profile_id), info);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(
    nvmlDevice_t device, unsigned int profile_id, nvmlGpuInstancePlacement_t* placements,
    unsigned int* count) {
  GANTRY_ENTER(nvmlDeviceGetGpuInstancePossiblePlacements);
  return placements_of(device, profile_id, placements, count);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvmlDevice_t device, unsigned int profile_id, nvmlGpuInstancePlacement_t* placements,
    unsigned int* count) {
  GANTRY_ENTER(nvmlDeviceGetGpuInstancePossiblePlacements_v2);
  return placements_of(device, profile_id, placements, count);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device,
                                                                     unsigned int profile_id,
                                                                     unsigned int* count) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuInstanceRemainingCapacity, device);
  GANTRY_NEED(count);
  const auto* profile = profile_by_id(*target.card, profile_id);
  if (profile == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto now = gpu_now(target.gpu);
  *count = remaining_instances(*target.card, now, *profile);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvmlGpuInstance_t instance, unsigned int profile, unsigned int engine_profile,
    nvmlComputeInstanceProfileInfo_t* info) {
  GANTRY_ENTER(nvmlGpuInstanceGetComputeInstanceProfileInfo);
  if (info == nullptr || engine_profile >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  InstanceTarget target{};
  ComputeProfile found{};
  if (const auto result = find_compute_profile(instance, profile, target, found);
      result != NVML_SUCCESS) {
    return result;
  }
  *info = {};
  fill_compute(found, *info);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    nvmlGpuInstance_t instance, unsigned int profile, unsigned int engine_profile,
    nvmlComputeInstanceProfileInfo_v2_t* info) {
  GANTRY_ENTER(nvmlGpuInstanceGetComputeInstanceProfileInfoV);
  if (info == nullptr || engine_profile >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const unsigned int version = info->version;
  if (version != nvmlComputeInstanceProfileInfo_v2 &&
      version != nvmlComputeInstanceProfileInfo_v3) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  InstanceTarget target{};
  ComputeProfile found{};
  if (const auto result = find_compute_profile(instance, profile, target, found);
      result != NVML_SUCCESS) {
    return result;
  }
  // The third form is the second with one member more at its end.
  nvmlComputeInstanceProfileInfo_v3_t third{};
  fill_compute(found, third);
  third.version = version;
  compute_name(found, third.name, sizeof third.name);
  memcpy(static_cast<void*>(info), &third,
         version == nvmlComputeInstanceProfileInfo_v3 ? sizeof third : sizeof *info);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    nvmlGpuInstance_t instance, unsigned int profile_id, unsigned int* count) {
  GANTRY_ENTER(nvmlGpuInstanceGetComputeInstanceRemainingCapacity);
  GANTRY_NEED(count);
  InstanceTarget target{};
  ComputeProfile found{};
  if (const auto result = find_compute_profile(instance, profile_id, target, found);
      result != NVML_SUCCESS) {
    return result;
  }
  const auto now = gpu_now(target.gpu);
  const auto* filled = find_instance(now, target.gi_id);
  if (filled == nullptr) return NVML_ERROR_NOT_FOUND;
  *count = remaining_computes(*filled, found.instance->slices, found.slices);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t instance, unsigned int profile_id, nvmlComputeInstancePlacement_t* placements,
    unsigned int* count) {
  GANTRY_ENTER(nvmlGpuInstanceGetComputeInstancePossiblePlacements);
  GANTRY_NEED(count);
  InstanceTarget target{};
  ComputeProfile found{};
  if (const auto result = find_compute_profile(instance, profile_id, target, found);
      result != NVML_SUCCESS) {
    return result;
  }
  const uint32_t step = compute_alignment(found.slices);
  const uint32_t possible = (found.instance->slices - found.slices) / step + 1;
  if (placements != nullptr) {
    if (*count < possible) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < possible; ++i) placements[i] = {i * step, found.slices};
  }
  *count = possible;
  return NVML_SUCCESS;
}
