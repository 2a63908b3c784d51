// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/mig_machine.hpp"

#include "base/core/text.hpp"
#include "gpu/mig/compute_profiles.hpp"
#include "gpu/nvml/device_query.hpp"
#include "gpu/nvml/instance_id_internal.hpp"
#include "gpu/probe/nvml_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gantry::nvml {
namespace {

using mig::ComputeInstance;
using mig::ComputeProfile;
using mig::GpuInstance;
using mig::GpuProfile;
using mig::MigGpu;
using mig::Placement;

constexpr unsigned kMaxCards = 256;
constexpr unsigned kMaxListed = 64;  // places of a profile, instances of a card

// How a call ended that may say "there is none".
Result<bool> is_answered(const DeviceQuery& query, bool ok, std::string_view call) {
  if (ok) return true;
  const auto code = query.last();
  if (code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_NOT_FOUND ||
      code == NVML_ERROR_FUNCTION_NOT_FOUND || code == NVML_ERROR_INVALID_ARGUMENT)
    return false;
  return nvml_error(code, call);
}

std::string name_without_prefix(std::string name) {
  if (name.starts_with("MIG ")) name.erase(0, 4);
  return std::string(trim(name));
}

// What tells profiles of one size apart, where NVML gives no names.
std::string_view attribute_of(unsigned number) {
  switch (number) {
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: return "+me";
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX:
    case NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX:
    case NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX: return "+gfx";
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME: return "-me";
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: return "+me.all";
    default: return "";
  }
}

template <class Info>
GpuProfile profile_from(const Info& info, std::string name) {
  return {.name = std::move(name),
          .id = info.id,
          .slices = info.sliceCount,
          .max = info.instanceCount,
          .multiprocessors = info.multiprocessorCount,
          .memory_mib = info.memorySizeMB,
          .engines = {.copy = static_cast<int>(info.copyEngineCount & 0xffU),
                      .decoder = static_cast<int>(info.decoderCount & 0xffU),
                      .encoder = static_cast<int>(info.encoderCount & 0xffU),
                      .jpeg = static_cast<int>(info.jpegCount & 0xffU),
                      .optical_flow = static_cast<int>(info.ofaCount & 0xffU)}};
}

// nullopt: the GPU does not have the profile with this number.
Result<std::optional<GpuProfile>> read_profile(DeviceQuery& query, unsigned number,
                                               std::uint64_t memory_bytes) {
  nvmlGpuInstanceProfileInfo_v2_t named{};
  named.version = nvmlGpuInstanceProfileInfo_v2;
  if (GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceProfileInfoV, query.device(), number, &named)) {
    auto name = name_without_prefix(to_string(named.name));
    if (!name.empty()) return std::optional(profile_from(named, std::move(name)));
  }
  nvmlGpuInstanceProfileInfo_t info{};
  const bool ok =
      GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceProfileInfo, query.device(), number, &info);
  GANTRY_TRY(const bool there, is_answered(query, ok, "nvmlDeviceGetGpuInstanceProfileInfo"));
  if (!there) return std::optional<GpuProfile>();
  return std::optional(
      profile_from(info, fmt::format("{}{}",
                                     probe::mig_profile_name(info.sliceCount, info.sliceCount,
                                                             info.memorySizeMB, memory_bytes),
                                     attribute_of(number))));
}

Result<std::vector<Placement>> read_places(DeviceQuery& query, unsigned profile) {
  std::array<nvmlGpuInstancePlacement_t, kMaxListed> list{};
  unsigned count = kMaxListed;
  bool ok = GANTRY_QUERY(query, nvmlDeviceGetGpuInstancePossiblePlacements_v2, query.device(),
                         profile, list.data(), &count);
  if (!ok) {
    count = kMaxListed;
    ok = GANTRY_QUERY(query, nvmlDeviceGetGpuInstancePossiblePlacements, query.device(), profile,
                      list.data(), &count);
  }
  GANTRY_TRY(const bool there,
             is_answered(query, ok, "nvmlDeviceGetGpuInstancePossiblePlacements"));
  std::vector<Placement> places;
  for (unsigned i = 0; there && i < std::min(count, kMaxListed); ++i)
    places.push_back({.start = list[i].start, .size = list[i].size});
  std::sort(places.begin(), places.end());
  return places;
}

Result<std::vector<Placement>> read_compute_places(DeviceQuery& query, nvmlGpuInstance_t instance,
                                                   unsigned profile) {
  std::array<nvmlComputeInstancePlacement_t, kMaxListed> list{};
  unsigned count = kMaxListed;
  const bool ok = GANTRY_QUERY(query, nvmlGpuInstanceGetComputeInstancePossiblePlacements, instance,
                               profile, list.data(), &count);
  GANTRY_TRY(const bool there,
             is_answered(query, ok, "nvmlGpuInstanceGetComputeInstancePossiblePlacements"));
  std::vector<Placement> places;
  for (unsigned i = 0; there && i < std::min(count, kMaxListed); ++i)
    places.push_back({.start = list[i].start, .size = list[i].size});
  std::sort(places.begin(), places.end());
  return places;
}

Result<std::vector<ComputeProfile>> read_compute_profiles(DeviceQuery& query,
                                                          nvmlGpuInstance_t instance,
                                                          const GpuProfile& profile) {
  std::vector<ComputeProfile> profiles;
  for (unsigned number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; ++number) {
    nvmlComputeInstanceProfileInfo_t info{};
    const bool ok =
        GANTRY_QUERY(query, nvmlGpuInstanceGetComputeInstanceProfileInfo, instance, number,
                     unsigned{NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED}, &info);
    GANTRY_TRY(const bool there,
               is_answered(query, ok, "nvmlGpuInstanceGetComputeInstanceProfileInfo"));
    if (!there) continue;
    const bool whole = info.sliceCount >= profile.slices;
    // A second profile of the same size has more copy engines or other engines of its own; the
    // first is the one that the name means.
    const auto same = [&](const ComputeProfile& one) { return one.slices == info.sliceCount; };
    const bool again = std::any_of(profiles.begin(), profiles.end(), same);
    GANTRY_TRY(auto places, read_compute_places(query, instance, info.id));
    profiles.push_back(
        {.name = again   ? fmt::format("{}c.{}#{}", info.sliceCount, profile.name, number)
                 : whole ? profile.name
                         : fmt::format("{}c.{}", info.sliceCount, profile.name),
         .id = info.id,
         .slices = info.sliceCount,
         .max = info.instanceCount,
         .places = std::move(places)});
  }
  return profiles;
}

using Uuids =
    std::map<std::pair<unsigned, unsigned>, model::GpuUuid>;  // by GPU and compute instance

struct MigHandles {
  Uuids uuids;
  std::vector<mig_nvml::MigProcess> processes;
};

void read_handle(const Nvml& nvml, nvmlDevice_t handle, MigHandles& found) {
  DeviceQuery query(nvml, handle);
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetGpuInstanceId, handle, &gpu_instance) ||
      !GANTRY_QUERY(query, nvmlDeviceGetComputeInstanceId, handle, &compute_instance))
    return;
  std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
  if (GANTRY_QUERY(query, nvmlDeviceGetUUID, handle, uuid.data(),
                   static_cast<unsigned>(uuid.size())))
    found.uuids[{gpu_instance, compute_instance}].text = to_string(uuid);
  std::vector<nvmlProcessInfo_t> processes;
  if (!GANTRY_QUERY_LIST(query, nvmlDeviceGetComputeRunningProcesses_v3, processes)) return;
  for (const auto& process : processes) {
    // The list may be that of the whole card.
    const bool other_gpu_instance =
        process.gpuInstanceId != gpu_instance && process.gpuInstanceId != kNoInstance;
    const bool other_compute_instance =
        process.computeInstanceId != compute_instance && process.computeInstanceId != kNoInstance;
    if (other_gpu_instance || other_compute_instance) continue;
    found.processes.push_back(
        {.gpu_instance = gpu_instance, .compute_instance = compute_instance, .pid = process.pid});
  }
}

MigHandles read_handles(DeviceQuery& query) {
  MigHandles found;
  unsigned count = 0;
  if (!GANTRY_QUERY(query, nvmlDeviceGetMaxMigDeviceCount, query.device(), &count)) return found;
  for (unsigned index = 0; index < std::min(count, kMaxInstances); ++index) {
    nvmlDevice_t handle = nullptr;
    if (GANTRY_QUERY(query, nvmlDeviceGetMigDeviceHandleByIndex, query.device(), index, &handle))
      read_handle(query.nvml(), handle, found);
  }
  return found;
}

std::vector<nvmlComputeInstance_t> first_of(
    const std::array<nvmlComputeInstance_t, kMaxListed>& list, unsigned count) {
  return {list.begin(), list.begin() + std::min(count, kMaxListed)};
}

Result<nvmlComputeInstanceInfo_t> compute_info(DeviceQuery& query, nvmlComputeInstance_t instance) {
  nvmlComputeInstanceInfo_t info{};
  if (GANTRY_QUERY(query, nvmlComputeInstanceGetInfo_v2, instance, &info)) return info;
  info = {};
  // The first version has no place.
  if (GANTRY_QUERY(query, nvmlComputeInstanceGetInfo, instance, &info)) {
    info.placement = {};
    return info;
  }
  return nvml_error(query.last(), "nvmlComputeInstanceGetInfo");
}

Result<std::vector<ComputeInstance>> read_compute_instances(
    DeviceQuery& query, nvmlGpuInstance_t handle, unsigned gpu_instance,
    const std::vector<ComputeProfile>& profiles, const Uuids& uuids) {
  std::vector<ComputeInstance> found;
  for (const auto& profile : profiles) {
    std::array<nvmlComputeInstance_t, kMaxListed> list{};
    unsigned count = kMaxListed;
    const bool ok = GANTRY_QUERY(query, nvmlGpuInstanceGetComputeInstances, handle, profile.id,
                                 list.data(), &count);
    GANTRY_TRY(const bool there, is_answered(query, ok, "nvmlGpuInstanceGetComputeInstances"));
    if (!there) continue;
    for (auto* const one : first_of(list, count)) {
      GANTRY_TRY(const auto info, compute_info(query, one));
      const auto same = [&](const ComputeInstance& other) { return other.id == info.id; };
      if (std::any_of(found.begin(), found.end(), same)) continue;
      const auto uuid = uuids.find({gpu_instance, info.id});
      found.push_back({.id = info.id,
                       .profile = profile.name,
                       .place = {.start = info.placement.start, .size = info.placement.size},
                       .uuid = uuid == uuids.end() ? model::GpuUuid{} : uuid->second});
    }
  }
  std::sort(found.begin(), found.end(), [](const ComputeInstance& a, const ComputeInstance& b) {
    return std::pair(a.place, a.id) < std::pair(b.place, b.id);
  });
  return found;
}

Result<std::vector<GpuInstance>> read_instances_of(DeviceQuery& query, GpuProfile& profile,
                                                   const Uuids& uuids) {
  std::array<nvmlGpuInstance_t, kMaxListed> list{};
  unsigned count = kMaxListed;
  const bool ok = GANTRY_QUERY(query, nvmlDeviceGetGpuInstances, query.device(), profile.id,
                               list.data(), &count);
  GANTRY_TRY(const bool there, is_answered(query, ok, "nvmlDeviceGetGpuInstances"));
  std::vector<GpuInstance> found;
  for (unsigned i = 0; there && i < std::min(count, kMaxListed); ++i) {
    nvmlGpuInstanceInfo_t info{};
    if (!GANTRY_QUERY(query, nvmlGpuInstanceGetInfo, list[i], &info))
      return nvml_error(query.last(), "nvmlGpuInstanceGetInfo");
    GANTRY_TRY(auto compute, read_compute_profiles(query, list[i], profile));
    if (!compute.empty()) profile.compute = std::move(compute);
    GpuInstance instance{.id = info.id,
                         .profile = profile.name,
                         .place = {.start = info.placement.start, .size = info.placement.size}};
    GANTRY_TRY(instance.compute,
               read_compute_instances(query, list[i], info.id, profile.compute, uuids));
    found.push_back(std::move(instance));
  }
  return found;
}

model::MigMode mode_from(unsigned mode) {
  return mode == NVML_DEVICE_MIG_ENABLE ? model::MigMode::Enabled : model::MigMode::Disabled;
}

Status read_mig_modes(DeviceQuery& query, MigGpu& gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  const bool ok = GANTRY_QUERY(query, nvmlDeviceGetMigMode, query.device(), &current, &pending);
  GANTRY_TRY(const bool there, is_answered(query, ok, "nvmlDeviceGetMigMode"));
  gpu.current = there ? mode_from(current) : model::MigMode::Unsupported;
  gpu.pending = there ? mode_from(pending) : model::MigMode::Unsupported;
  return {};
}

Status read_mig_identity(DeviceQuery& query, MigGpu& gpu) {
  nvmlPciInfo_t pci{};
  if (!GANTRY_QUERY(query, nvmlDeviceGetPciInfo_v3, query.device(), &pci))
    return nvml_error(query.last(), "nvmlDeviceGetPciInfo_v3");
  const auto address = model::PciAddress::parse(to_string(pci.busId));
  if (!address) return Error(Errc::Corrupt, "NVML gave an invalid PCI address");
  gpu.pci = *address;
  gpu.device_id = pci.pciDeviceId;
  gpu.subsystem_id = pci.pciSubSystemId;
  std::array<char, NVML_DEVICE_UUID_V2_BUFFER_SIZE> uuid{};
  if (GANTRY_QUERY(query, nvmlDeviceGetUUID, query.device(), uuid.data(),
                   static_cast<unsigned>(uuid.size())))
    gpu.uuid.text = to_string(uuid);
  std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> name{};
  if (GANTRY_QUERY(query, nvmlDeviceGetName, query.device(), name.data(),
                   static_cast<unsigned>(name.size())))
    gpu.name = to_string(name);
  return {};
}

std::uint64_t memory_of(DeviceQuery& query) {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  if (GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo_v2, query.device(), &memory)) return memory.total;
  nvmlMemory_t older{};
  return GANTRY_QUERY(query, nvmlDeviceGetMemoryInfo, query.device(), &older) ? older.total : 0;
}

Result<MigGpu> read_mig_gpu(DeviceQuery& query, std::vector<mig_nvml::MigProcess>& processes) {
  MigGpu gpu;
  GANTRY_CHECK(read_mig_identity(query, gpu));
  GANTRY_CHECK(read_mig_modes(query, gpu));
  if (gpu.current == model::MigMode::Unsupported) return gpu;
  const auto memory = memory_of(query);
  MigHandles handles;
  if (gpu.current == model::MigMode::Enabled) handles = read_handles(query);
  for (unsigned number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; ++number) {
    GANTRY_TRY(auto profile, read_profile(query, number, memory));
    if (!profile) continue;
    GANTRY_TRY(profile->places, read_places(query, profile->id));
    // NVML tells compute profiles, and their places, only of an instance that exists.
    profile->compute = mig::usual_compute_profiles(*profile);
    if (gpu.current == model::MigMode::Enabled) {
      GANTRY_TRY(auto instances, read_instances_of(query, *profile, handles.uuids));
      gpu.instances.insert(gpu.instances.end(), instances.begin(), instances.end());
    }
    gpu.profiles.push_back(*std::move(profile));
  }
  std::sort(gpu.instances.begin(), gpu.instances.end(),
            [](const GpuInstance& a, const GpuInstance& b) { return a.place < b.place; });
  for (auto& process : handles.processes) {
    process.gpu = gpu.pci;
    processes.push_back(process);
  }
  return gpu;
}

}  // namespace

Result<mig_nvml::MigMachine> read_mig_machine(const Nvml& nvml) {
  unsigned count = 0;
  if (const auto code = nvml.nvmlDeviceGetCount_v2(&count); code != NVML_SUCCESS)
    return nvml_error(code, "nvmlDeviceGetCount_v2");
  mig_nvml::MigMachine machine;
  for (unsigned index = 0; index < std::min(count, kMaxCards); ++index) {
    nvmlDevice_t device = nullptr;
    const auto code = nvml.nvmlDeviceGetHandleByIndex_v2(index, &device);
    // A lost GPU must not keep the others from their change.
    if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_NO_PERMISSION) continue;
    if (code != NVML_SUCCESS) return nvml_error(code, "nvmlDeviceGetHandleByIndex_v2");
    DeviceQuery query(nvml, device);
    auto gpu = read_mig_gpu(query, machine.processes);
    if (!gpu.ok() && query.lost()) continue;
    if (!gpu.ok()) return std::move(gpu).in(fmt::format("reading MIG of GPU {}", index)).error();
    gpu->index = static_cast<int>(index);
    machine.gpus.push_back(*std::move(gpu));
  }
  return machine;
}

}  // namespace gantry::nvml
