// SPDX-License-Identifier: Apache-2.0
// Queries of MIG: mode, device handles, attributes, GPU and compute instances.

#include "sim/libnvidia-ml/mig_internal.hpp"

#include <string.h>

using namespace gantry::sim::nvml;

namespace {

bool mig_on(uint32_t gpu) {
  const auto now = gpu_now(gpu);
  return now.mig_current != 0;
}

nvmlReturn_t attributes_of(nvmlDevice_t device, nvmlDeviceAttributes_t* out) {
  Target target{};
  if (const nvmlReturn_t result = resolve(device, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(out);
  if (!target.mig) return NVML_ERROR_NOT_SUPPORTED;
  MigDevice found{};
  if (!find_mig(target, found)) return NVML_ERROR_NOT_FOUND;
  const auto& profile = target.card->mig_profile[found.profile];
  *out = {};
  out->multiprocessorCount =
      profile.slices == 0 ? 0 : profile.multiprocessors * found.slices / profile.slices;
  out->sharedCopyEngineCount = profile.copy_engines;
  out->sharedDecoderCount = profile.decoders;
  out->sharedEncoderCount = profile.encoders;
  out->sharedJpegCount = profile.jpegs;
  out->sharedOfaCount = profile.ofas;
  out->gpuInstanceSliceCount = profile.slices;
  out->computeInstanceSliceCount = found.slices;
  out->memorySizeMB = profile.memory_mib;
  return NVML_SUCCESS;
}

nvmlReturn_t instance_info(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t* info) {
  InstanceTarget target{};
  if (const auto result = resolve_instance(handle, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(info);
  const auto now = gpu_now(target.gpu);
  const auto* instance = find_instance(now, target.gi_id);
  const auto* profile = instance == nullptr ? nullptr : profile_of(*target.card, *instance);
  if (profile == nullptr) return NVML_ERROR_NOT_FOUND;
  *info = {gpu_handle(target.gpu),
           target.gi_id,
           profile->id,
           {instance->placement, profile->memory_slices}};
  return NVML_SUCCESS;
}

nvmlReturn_t compute_info(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t* info) {
  InstanceTarget target{};
  if (const auto result = resolve_compute(handle, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(info);
  const auto now = gpu_now(target.gpu);
  const auto* instance = find_instance(now, target.gi_id);
  if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
  for (uint32_t i = 0; i < instance->ci_count; ++i) {
    const auto& compute = instance->ci[i];
    if (compute.ci_id != target.ci_id) continue;
    *info = {gpu_handle(target.gpu),
             instance_handle(target.gpu, target.gi_id),
             compute.ci_id,
             compute_profile_number(compute.slices),
             {compute.start, compute.slices}};
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                                unsigned int* pending) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMigMode, device);
  GANTRY_NEED(current);
  GANTRY_NEED(pending);
  if (target.card->mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  const auto now = gpu_now(target.gpu);
  *current = now.mig_current;
  *pending = now.mig_pending;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  GANTRY_ENTER_DEVICE(nvmlDeviceIsMigDeviceHandle, device, Reach::Identity);
  GANTRY_NEED(is_mig);
  *is_mig = target.mig ? 1 : 0;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int* id) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetGpuInstanceId, device);
  if (!target.mig || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *id = target.gi_id;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int* id) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetComputeInstanceId, device);
  if (!target.mig || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *id = target.ci_id;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device,
                                                          unsigned int* count) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMaxMigDeviceCount, device, Reach::Live,
                   NVML_ERROR_INVALID_ARGUMENT);
  GANTRY_NEED(count);
  *count = 0;
  if (target.card->mig_capable == 0 || !mig_on(target.gpu)) return NVML_SUCCESS;
  for (uint32_t i = 0; i < target.card->mig_profile_count; ++i) {
    const uint32_t instances = target.card->mig_profile[i].instances;
    if (instances > *count) *count = instances;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device,
                                                               unsigned int index,
                                                               nvmlDevice_t* mig) {
  GANTRY_ENTER_GPU(nvmlDeviceGetMigDeviceHandleByIndex, device, Reach::Live,
                   NVML_ERROR_INVALID_ARGUMENT);
  GANTRY_NEED(mig);
  const auto found = mig_with_index(target, index);
  if (found == nullptr) return NVML_ERROR_NOT_FOUND;
  *mig = found;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                        nvmlDevice_t* device) {
  GANTRY_ENTER_DEVICE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig, Reach::Identity);
  if (!target.mig || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *device = gpu_handle(target.gpu);
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device,
                                                   nvmlDeviceAttributes_t* attributes) {
  GANTRY_ENTER(nvmlDeviceGetAttributes);
  return attributes_of(device, attributes);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device,
                                                      nvmlDeviceAttributes_t* attributes) {
  GANTRY_ENTER(nvmlDeviceGetAttributes_v2);
  return attributes_of(device, attributes);
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                                     nvmlGpuInstance_t* instances,
                                                     unsigned int* count) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuInstances, device);
  GANTRY_NEED(instances);
  GANTRY_NEED(count);
  *count = 0;
  const auto* profile = profile_by_id(*target.card, profile_id);
  if (profile == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto now = gpu_now(target.gpu);
  for (const auto& instance : now.mig) {
    if (instance.used == 0 || profile_of(*target.card, instance) != profile) continue;
    if (auto* handle = instance_handle(target.gpu, instance.gi_id)) instances[(*count)++] = handle;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                        nvmlGpuInstance_t* instance) {
  GANTRY_ENTER_GPU(nvmlDeviceGetGpuInstanceById, device);
  GANTRY_NEED(instance);
  const auto now = gpu_now(target.gpu);
  if (find_instance(now, id) == nullptr) return NVML_ERROR_NOT_FOUND;
  *instance = instance_handle(target.gpu, id);
  return *instance == nullptr ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance,
                                                  nvmlGpuInstanceInfo_t* info) {
  GANTRY_ENTER(nvmlGpuInstanceGetInfo);
  return instance_info(instance, info);
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance,
                                                              unsigned int profile_id,
                                                              nvmlComputeInstance_t* computes,
                                                              unsigned int* count) {
  GANTRY_ENTER(nvmlGpuInstanceGetComputeInstances);
  InstanceTarget target{};
  if (const auto result = resolve_instance(instance, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(computes);
  GANTRY_NEED(count);
  *count = 0;
  const auto now = gpu_now(target.gpu);
  const auto* found = find_instance(now, target.gi_id);
  if (found == nullptr) return NVML_ERROR_NOT_FOUND;
  for (uint32_t i = 0; i < found->ci_count; ++i) {
    if (compute_profile_number(found->ci[i].slices) != profile_id) continue;
    auto* handle = compute_handle(target.gpu, target.gi_id, found->ci[i].ci_id);
    if (handle != nullptr) computes[(*count)++] = handle;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance,
                                                                 unsigned int id,
                                                                 nvmlComputeInstance_t* compute) {
  GANTRY_ENTER(nvmlGpuInstanceGetComputeInstanceById);
  InstanceTarget target{};
  if (const auto result = resolve_instance(instance, target); result != NVML_SUCCESS) return result;
  GANTRY_NEED(compute);
  auto* handle = compute_handle(target.gpu, target.gi_id, id);
  if (handle == nullptr || resolve_compute(handle, target) != NVML_SUCCESS)
    return NVML_ERROR_NOT_FOUND;
  *compute = handle;
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute,
                                                      nvmlComputeInstanceInfo_t* info) {
  GANTRY_ENTER(nvmlComputeInstanceGetInfo);
  return compute_info(compute, info);
}

GANTRY_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute,
                                                         nvmlComputeInstanceInfo_t* info) {
  GANTRY_ENTER(nvmlComputeInstanceGetInfo_v2);
  return compute_info(compute, info);
}
