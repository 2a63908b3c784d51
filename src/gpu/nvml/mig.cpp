// SPDX-License-Identifier: Apache-2.0
// MIG mode and instances of one GPU.
#include "base/core/text.hpp"
#include "gpu/nvml/gpu_internal.hpp"
#include "gpu/nvml/instance_id_internal.hpp"
#include "gpu/probe/nvml_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::nvml {
namespace {

using ProfileNames = std::vector<std::pair<unsigned, std::string>>;  // by profile id

model::MigMode mode_of(unsigned mode) {
  return mode == NVML_DEVICE_MIG_ENABLE ? model::MigMode::Enabled : model::MigMode::Disabled;
}

// NVML's names, "MIG 1g.18gb+me" without the first word. Drivers before 510 give none.
ProfileNames profile_names(DeviceQuery& query) {
  ProfileNames names;
  if (query.nvml().nvmlDeviceGetGpuInstanceProfileInfoV == nullptr) return names;
  for (unsigned profile = 0; profile < NVML_GPU_INSTANCE_PROFILE_COUNT; ++profile) {
    nvmlGpuInstanceProfileInfo_v2_t info{};
    info.version = nvmlGpuInstanceProfileInfo_v2;
    if (!GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceProfileInfoV, query.device(), profile, &info))
      continue;
    auto name = to_string(info.name);
    if (name.starts_with("MIG ")) name.erase(0, 4);
    names.emplace_back(info.id, std::string(trim(name)));
  }
  return names;
}

std::string profile_of(const ProfileNames& names, std::optional<unsigned> profile_id,
                       const nvmlDeviceAttributes_t& attributes, std::uint64_t gpu_memory_bytes) {
  const auto gpu_slices = attributes.gpuInstanceSliceCount;
  const auto compute_slices = attributes.computeInstanceSliceCount;
  for (const auto& [id, name] : names) {
    if (profile_id != id || name.empty()) continue;
    const bool whole = compute_slices == 0 || compute_slices >= gpu_slices;
    return whole ? name : fmt::format("{}c.{}", compute_slices, name);
  }
  return probe::mig_profile_name(gpu_slices, compute_slices, attributes.memorySizeMB,
                                 gpu_memory_bytes);
}

std::optional<nvmlGpuInstanceInfo_t> gpu_instance_info(DeviceQuery& query, unsigned id) {
  nvmlGpuInstance_t instance = nullptr;
  nvmlGpuInstanceInfo_t info{};
  if (!GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceById, query.device(), id, &instance))
    return std::nullopt;
  if (!GANTRY_QUERY(query, nvmlGpuInstanceGetInfo, instance, &info)) return std::nullopt;
  return info;
}

std::optional<model::MigInstance> read_instance(DeviceQuery& query, unsigned index,
                                                const ProfileNames& names,
                                                std::uint64_t gpu_memory_bytes) {
  nvmlDevice_t handle = nullptr;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMigDeviceHandleByIndex, query.device(), index, &handle)) {
    return std::nullopt;  // there may be gaps between instances
  }
  model::MigInstance found;
  found.index = static_cast<int>(index);
  std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
  if (GANTRY_QUERY(query, nvmlDeviceGetUUID, handle, uuid.data(),
                   static_cast<unsigned>(uuid.size()))) {
    found.uuid.text = to_string(uuid);
  }
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceId, handle, &gpu_instance) ||
      !GANTRY_QUERY(query, nvmlDeviceGetComputeInstanceId, handle, &compute_instance) ||
      gpu_instance > kMaxInstances * 8 || compute_instance > kMaxInstances * 8) {
    return std::nullopt;  // it was destroyed between two calls
  }
  found.gpu_instance = static_cast<int>(gpu_instance);
  found.compute_instance = static_cast<int>(compute_instance);
  nvmlDeviceAttributes_t attributes{};
  if (!GANTRY_QUERY(query, nvmlDeviceGetAttributes_v2, handle, &attributes)) {
    GANTRY_QUERY(query, nvmlDeviceGetAttributes, handle, &attributes);
  }
  found.memory_bytes = attributes.memorySizeMB << 20U;
  found.multiprocessors = static_cast<int>(attributes.multiprocessorCount & 0xffffU);
  const auto small = [](unsigned value) { return static_cast<int>(value & 0xffU); };
  found.gpu_slices = small(attributes.gpuInstanceSliceCount);
  found.compute_slices = small(attributes.computeInstanceSliceCount);
  found.engines = {.copy = small(attributes.sharedCopyEngineCount),
                   .decoder = small(attributes.sharedDecoderCount),
                   .encoder = small(attributes.sharedEncoderCount),
                   .jpeg = small(attributes.sharedJpegCount),
                   .optical_flow = small(attributes.sharedOfaCount)};
  const auto info = gpu_instance_info(query, gpu_instance);
  if (info) {
    found.placement_start = static_cast<int>(info->placement.start & 0xffU);
    found.placement_size = static_cast<int>(info->placement.size & 0xffU);
  }
  const auto profile = info ? std::optional<unsigned>(info->profileId) : std::nullopt;
  found.profile = profile_of(names, profile, attributes, gpu_memory_bytes);
  return found;
}

}  // namespace

void read_mig(DeviceQuery& query, model::Gpu& gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMigMode, query.device(), &current, &pending)) {
    const bool absent =
        query.last() == NVML_ERROR_NOT_SUPPORTED || query.last() == NVML_ERROR_FUNCTION_NOT_FOUND;
    const auto mode = absent ? model::MigMode::Unsupported : model::MigMode::Unknown;
    gpu.mig.current = gpu.mig.pending = mode;
    return;
  }
  gpu.mig.current = mode_of(current);
  gpu.mig.pending = mode_of(pending);
  if (gpu.mig.current != model::MigMode::Enabled) return;
  unsigned count = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMaxMigDeviceCount, query.device(), &count)) return;
  const auto names = profile_names(query);
  for (unsigned index = 0; index < std::min(count, kMaxInstances); ++index) {
    auto instance = read_instance(query, index, names, gpu.memory_bytes.value_or(0));
    if (instance) gpu.mig.instances.push_back(*std::move(instance));
  }
}

}  // namespace gantry::nvml
