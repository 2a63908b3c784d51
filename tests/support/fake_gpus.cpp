// SPDX-License-Identifier: Apache-2.0
#include "support/fake_gpus.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace gantry::test {
namespace {

FakeGpus* the_machine = nullptr;

constexpr std::uintptr_t kGpu = 0x1000;    // + index
constexpr std::uintptr_t kMig = 0x100000;  // + index << 8 + place
constexpr std::uintptr_t kInstance = 0x200000;

template <class Handle>
Handle handle(std::uintptr_t value) {
  return reinterpret_cast<Handle>(value);  // NOLINT(performance-no-int-to-ptr): an opaque handle
}
std::uintptr_t number(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

int gpu_index(nvmlDevice_t device) {
  const auto value = number(device);
  if (value >= kMig) return static_cast<int>((value - kMig) >> 8U);
  return static_cast<int>(value - kGpu);
}
FakeGpu& gpu_of(nvmlDevice_t device) {
  return the_machine->gpus.at(static_cast<std::size_t>(gpu_index(device)));
}
const FakeMig* mig_of(nvmlDevice_t device) {
  if (number(device) < kMig) return nullptr;
  return &gpu_of(device).mig.at(number(device) & 0xffU);
}

nvmlReturn_t fault(std::string_view function, int gpu) {
  const auto call = the_machine->calls++;
  return the_machine->fault ? the_machine->fault(function, gpu, call) : NVML_SUCCESS;
}

nvmlReturn_t put(const std::string& text, char* buffer, unsigned length) {
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

nvmlReturn_t put_processes(const std::vector<nvmlProcessInfo_t>& list, unsigned* count,
                           nvmlProcessInfo_t* infos) {
  const auto room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(list.begin(), list.end(), infos);
  return NVML_SUCCESS;
}

// Answers through a lambda without captures, after the fault hook.
#define MACHINE(function, parameters, ...)                            \
  nvml.function = [] parameters -> nvmlReturn_t {                     \
    if (const auto wrong = fault(#function, -1); wrong) return wrong; \
    __VA_ARGS__                                                       \
  }
#define DEVICE(function, parameters, ...)                                            \
  nvml.function = [] parameters -> nvmlReturn_t {                                    \
    if (const auto wrong = fault(#function, gpu_index(device)); wrong) return wrong; \
    __VA_ARGS__                                                                      \
  }

void add_machine(nvml::Nvml& nvml) {
  MACHINE(nvmlInit_v2, (), { return NVML_SUCCESS; });
  MACHINE(nvmlSystemGetDriverVersion, (char* text, unsigned length),
          { return put(the_machine->driver_version, text, length); });
  MACHINE(nvmlSystemGetNVMLVersion, (char* text, unsigned length),
          { return put("13." + the_machine->driver_version, text, length); });
  MACHINE(nvmlSystemGetCudaDriverVersion_v2, (int* version), {
    *version = 13000;
    return NVML_SUCCESS;
  });
  MACHINE(nvmlDeviceGetCount_v2, (unsigned* count), {
    *count = the_machine->count.value_or(static_cast<unsigned>(the_machine->gpus.size()));
    return NVML_SUCCESS;
  });
  MACHINE(nvmlSystemGetProcessName, (unsigned pid, char* text, unsigned length), {
    const auto found = the_machine->process_names.find(pid);
    return found == the_machine->process_names.end() ? NVML_ERROR_NOT_FOUND
                                                     : put(found->second, text, length);
  });
  nvml.nvmlDeviceGetHandleByIndex_v2 = [](unsigned index, nvmlDevice_t* device) {
    if (const auto wrong = fault("nvmlDeviceGetHandleByIndex_v2", static_cast<int>(index)); wrong) {
      return wrong;
    }
    if (index >= the_machine->gpus.size()) return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle<nvmlDevice_t>(kGpu + index);
    return NVML_SUCCESS;
  };
}

void add_identity(nvml::Nvml& nvml) {
  DEVICE(nvmlDeviceGetUUID, (nvmlDevice_t device, char* text, unsigned length), {
    const auto* mig = mig_of(device);
    return put(mig != nullptr ? mig->uuid : gpu_of(device).uuid, text, length);
  });
  DEVICE(nvmlDeviceGetName, (nvmlDevice_t device, char* text, unsigned length),
         { return put(gpu_of(device).name, text, length); });
  DEVICE(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t * pci), {
    std::snprintf(pci->busId, sizeof pci->busId, "%s", gpu_of(device).bus_id.c_str());
    pci->pciDeviceId = 0x233510de;
    pci->pciSubSystemId = 0x18bf10de;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned* minor), {
    *minor = gpu_of(device).minor;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetBrand, (nvmlDevice_t device, nvmlBrandType_t * brand), {
    *brand = NVML_BRAND_NVIDIA;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetArchitecture, (nvmlDevice_t device, nvmlDeviceArchitecture_t * architecture),
         {
           *architecture = NVML_DEVICE_ARCH_HOPPER;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t device, int* major, int* minor), {
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t * mode), {
    *mode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t * memory), {
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = gpu_of(device).memory_bytes;
    memory->used = 1U << 20U;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
  });
}

void add_mig(nvml::Nvml& nvml) {
  DEVICE(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned* current, unsigned* pending), {
    if (!gpu_of(device).mig_capable) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = gpu_of(device).mig_enabled ? 1U : 0U;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned* count), {
    *count = 7;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetMigDeviceHandleByIndex,
         (nvmlDevice_t device, unsigned index, nvmlDevice_t* mig), {
           if (index >= gpu_of(device).mig.size()) return NVML_ERROR_NOT_FOUND;
           *mig = handle<nvmlDevice_t>(
               kMig + (static_cast<std::uintptr_t>(gpu_index(device)) << 8U) + index);
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t device, unsigned* id), {
    *id = mig_of(device)->gpu_instance;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t device, unsigned* id), {
    *id = mig_of(device)->compute_instance;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetAttributes_v2, (nvmlDevice_t device, nvmlDeviceAttributes_t * attributes), {
    const auto& profile = gpu_of(device).profiles.at(mig_of(device)->profile);
    attributes->gpuInstanceSliceCount = profile.slices;
    attributes->computeInstanceSliceCount = mig_of(device)->compute_slices;
    attributes->memorySizeMB = profile.memory_mib;
    attributes->multiprocessorCount = 16;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetGpuInstanceById,
         (nvmlDevice_t device, unsigned id, nvmlGpuInstance_t* instance), {
           *instance = handle<nvmlGpuInstance_t>(
               kInstance + (static_cast<std::uintptr_t>(gpu_index(device)) << 8U) + id);
           return NVML_SUCCESS;
         });
  MACHINE(nvmlGpuInstanceGetInfo, (nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t * info), {
    const auto value = number(instance) - kInstance;
    const auto& gpu = the_machine->gpus.at(value >> 8U);
    for (const auto& mig : gpu.mig) {
      if (mig.gpu_instance != (value & 0xffU)) continue;
      info->id = mig.gpu_instance;
      info->profileId = gpu.profiles.at(mig.profile).id;
      info->placement = {mig.placement_start, gpu.profiles.at(mig.profile).placement_size};
      return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
  });
  DEVICE(nvmlDeviceGetGpuInstanceProfileInfoV,
         (nvmlDevice_t device, unsigned profile, nvmlGpuInstanceProfileInfo_v2_t* info), {
           if (profile >= gpu_of(device).profiles.size()) return NVML_ERROR_NOT_SUPPORTED;
           const auto& known = gpu_of(device).profiles[profile];
           info->id = known.id;
           return put(known.name, info->name, sizeof info->name);
         });
}

void add_health(nvml::Nvml& nvml) {
  DEVICE(nvmlDeviceGetTotalEccErrors,
         (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t,
          unsigned long long* count),
         {
           *count = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? gpu_of(device).ecc_uncorrected : 0;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetRemappedRows,
         (nvmlDevice_t device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
          unsigned* failure),
         {
           *correctable = *uncorrectable = 0;
           *pending = gpu_of(device).remap_pending;
           *failure = gpu_of(device).remap_failure;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetFieldValues, (nvmlDevice_t device, int count, nvmlFieldValue_t* values), {
    for (int i = 0; i < count; ++i) {
      const bool known = values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
      values[i].nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
      values[i].value.uiVal = gpu_of(device).recovery_action;
    }
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t device, unsigned long long* reasons),
         {
           *reasons = gpu_of(device).clock_reasons;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetGpuFabricInfoV, (nvmlDevice_t device, nvmlGpuFabricInfoV_t * info), {
    info->state = gpu_of(device).fabric_state;
    return NVML_SUCCESS;
  });
  DEVICE(nvmlDeviceGetTemperature,
         (nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned* celsius), {
           *celsius = 35;
           return NVML_SUCCESS;
         });
}

void add_links_and_processes(nvml::Nvml& nvml) {
  DEVICE(nvmlDeviceGetTopologyCommonAncestor,
         (nvmlDevice_t device, nvmlDevice_t, nvmlGpuTopologyLevel_t * level), {
           *level = the_machine->level;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetNvLinkState, (nvmlDevice_t device, unsigned link, nvmlEnableState_t* active),
         {
           const auto& gpu = gpu_of(device);
           const auto count = static_cast<std::size_t>(gpu.switch_links) + gpu.links.size();
           if (count == 0) return NVML_ERROR_NOT_SUPPORTED;
           if (link >= count) return NVML_ERROR_INVALID_ARGUMENT;
           *active = NVML_FEATURE_ENABLED;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetNvLinkRemoteDeviceType,
         (nvmlDevice_t device, unsigned link, nvmlIntNvLinkDeviceType_t* type), {
           const bool to_switch = static_cast<int>(link) < gpu_of(device).switch_links;
           *type = to_switch ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetNvLinkRemotePciInfo_v2,
         (nvmlDevice_t device, unsigned link, nvmlPciInfo_t* pci), {
           const auto& gpu = gpu_of(device);
           const bool to_switch = static_cast<int>(link) < gpu.switch_links;
           const auto bus_id = to_switch
                                   ? std::string("00000000:F0:00.0")
                                   : gpu.links.at(link - static_cast<unsigned>(gpu.switch_links));
           std::snprintf(pci->busId, sizeof pci->busId, "%s", bus_id.c_str());
           return NVML_SUCCESS;
         });
  DEVICE(nvmlDeviceGetComputeRunningProcesses_v3,
         (nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* infos),
         { return put_processes(gpu_of(device).compute, count, infos); });
  DEVICE(nvmlDeviceGetGraphicsRunningProcesses_v3,
         (nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* infos),
         { return put_processes(gpu_of(device).graphics, count, infos); });
}

}  // namespace

FakeGpus::FakeGpus(std::vector<FakeGpu> list) : gpus(std::move(list)) {
  GANTRY_ASSERT(the_machine == nullptr);
  the_machine = this;
}

FakeGpus::~FakeGpus() {
  the_machine = nullptr;
}

nvml::Nvml FakeGpus::nvml() const {
  nvml::Nvml nvml;
  add_machine(nvml);
  add_identity(nvml);
  add_mig(nvml);
  add_health(nvml);
  add_links_and_processes(nvml);
  return nvml;
}

}  // namespace gantry::test
