// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/mig_profiles.hpp"

namespace smi {
namespace {

const char* without_mig(const char* name) {
  return strncmp(name, "MIG ", 4) == 0 ? name + 4 : name;
}

template <class Instance>
void sort_by_id(const Gpu& gpu, Instance* rows, unsigned count) {
  for (unsigned i = 1; i < count; ++i) {
    const Instance row = rows[i];
    const unsigned id = instance_info(gpu, row).id;
    unsigned at = i;
    for (; at > 0 && instance_info(gpu, rows[at - 1]).id > id; --at) rows[at] = rows[at - 1];
    rows[at] = row;
  }
}

bool read_profile(const Gpu& gpu, unsigned number, GpuProfile& out) {
  const Nvml& nvml = gpu.session->nvml;
  if (call(nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu.handle, number, &out.info) !=
      NVML_SUCCESS) {
    return false;
  }
  nvmlGpuInstanceProfileInfo_v2_t named = {};
  named.version = nvmlGpuInstanceProfileInfo_v2;
  if (call(nvml.nvmlDeviceGetGpuInstanceProfileInfoV, gpu.handle, number, &named) == NVML_SUCCESS) {
    out.name.set("%s", without_mig(named.name));
  } else {
    out.name.set("%ug.%llugb", out.info.sliceCount, (out.info.memorySizeMB + 1023) / 1024);
  }
  return true;
}

bool read_profile(const Gpu& gpu, nvmlGpuInstance_t instance, unsigned number,
                  ComputeProfile& out) {
  const Nvml& nvml = gpu.session->nvml;
  const unsigned engine = NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED;
  if (call(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, instance, number, engine,
           &out.info) != NVML_SUCCESS) {
    return false;
  }
  nvmlComputeInstanceProfileInfo_v2_t named = {};
  named.version = nvmlComputeInstanceProfileInfo_v2;
  call(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfoV, instance, number, engine, &named);
  out.name.set("%s", named.name[0] != '\0' ? without_mig(named.name) : "?");
  return true;
}

}  // namespace

void read_profiles(const Gpu& gpu, GpuProfiles& out) {
  out.count = 0;
  for (unsigned number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; ++number) {
    GpuProfile profile;
    if (!read_profile(gpu, number, profile)) continue;
    unsigned at = out.count++;
    for (; at > 0 && out.rows[at - 1].info.sliceCount > profile.info.sliceCount; --at) {
      out.rows[at] = out.rows[at - 1];
    }
    out.rows[at] = profile;
  }
}

void read_profiles(const Gpu& gpu, nvmlGpuInstance_t instance, ComputeProfiles& out) {
  out.count = 0;
  for (unsigned number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; ++number) {
    if (read_profile(gpu, instance, number, out.rows[out.count])) ++out.count;
  }
}

unsigned gpu_instances(const Gpu& gpu, unsigned profile_id, nvmlGpuInstance_t* out) {
  unsigned count = kMaxInstances;
  const nvmlReturn_t error =
      call(gpu.session->nvml.nvmlDeviceGetGpuInstances, gpu.handle, profile_id, out, &count);
  if (error != NVML_SUCCESS || count > kMaxInstances) return 0;
  sort_by_id(gpu, out, count);
  return count;
}

unsigned compute_instances(const Gpu& gpu, nvmlGpuInstance_t instance, unsigned profile_id,
                           nvmlComputeInstance_t* out) {
  unsigned count = kMaxInstances;
  const nvmlReturn_t error =
      call(gpu.session->nvml.nvmlGpuInstanceGetComputeInstances, instance, profile_id, out, &count);
  if (error != NVML_SUCCESS || count > kMaxInstances) return 0;
  sort_by_id(gpu, out, count);
  return count;
}

nvmlGpuInstanceInfo_t instance_info(const Gpu& gpu, nvmlGpuInstance_t instance) {
  nvmlGpuInstanceInfo_t info = {};
  call(gpu.session->nvml.nvmlGpuInstanceGetInfo, instance, &info);
  return info;
}

nvmlComputeInstanceInfo_t instance_info(const Gpu& gpu, nvmlComputeInstance_t instance) {
  nvmlComputeInstanceInfo_t info = {};
  const Nvml& nvml = gpu.session->nvml;
  if (call(nvml.nvmlComputeInstanceGetInfo_v2, instance, &info) != NVML_SUCCESS) {
    call(nvml.nvmlComputeInstanceGetInfo, instance, &info);
  }
  return info;
}

const ComputeProfile* default_profile(const ComputeProfiles& profiles) {
  const ComputeProfile* best = nullptr;
  for (unsigned i = 0; i < profiles.count; ++i) {
    if (best == nullptr || profiles.rows[i].info.sliceCount > best->info.sliceCount)
      best = &profiles.rows[i];
  }
  return best;
}

bool is_listed(const char* list, unsigned id) {
  if (list == nullptr) return true;
  Text word;
  unsigned number = 0;
  while (next_item(&list, word)) {
    if (parse_number(word.c_str(), &number) && number == id) return true;
  }
  return false;
}

}  // namespace smi
