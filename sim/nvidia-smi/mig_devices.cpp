// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/mig_devices.hpp"

#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

// NVML names a MIG device "NVIDIA A100-SXM4-40GB MIG 3g.20gb".
void read_device_profile(const Nvml& nvml, MigDevice& device) {
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = {};
  call(nvml.nvmlDeviceGetName, device.handle, name, static_cast<unsigned>(sizeof name));
  const char* mig = strstr(name, "MIG ");
  device.profile.set("%s", mig != nullptr ? mig + 4 : name);
}

void read_device_memory(const Nvml& nvml, MigDevice& device) {
  nvmlMemory_v2_t modern = {};
  modern.version = nvmlMemory_v2;
  if (call(nvml.nvmlDeviceGetMemoryInfo_v2, device.handle, &modern) == NVML_SUCCESS) {
    device.memory = {modern.total, modern.free, modern.used};
    device.reserved = modern.reserved;
    return;
  }
  call(nvml.nvmlDeviceGetMemoryInfo, device.handle, &device.memory);
}

void read_device(const Nvml& nvml, MigDevice& device) {
  call(nvml.nvmlDeviceGetGpuInstanceId, device.handle, &device.gpu_instance);
  call(nvml.nvmlDeviceGetComputeInstanceId, device.handle, &device.compute_instance);
  char uuid_text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
  call(nvml.nvmlDeviceGetUUID, device.handle, uuid_text, static_cast<unsigned>(sizeof uuid_text));
  device.uuid.set("%s", uuid_text);
  read_device_profile(nvml, device);
  read_device_memory(nvml, device);
  call(nvml.nvmlDeviceGetBAR1MemoryInfo, device.handle, &device.bar1);
  if (call(nvml.nvmlDeviceGetAttributes_v2, device.handle, &device.attributes) != NVML_SUCCESS) {
    call(nvml.nvmlDeviceGetAttributes, device.handle, &device.attributes);
  }
}

}  // namespace

void read_mig_devices(const Gpu& gpu, MigDevices& out) {
  out.count = 0;
  const Nvml& nvml = gpu.session->nvml;
  unsigned slots = 0;
  if (!mig_enabled(gpu) ||
      call(nvml.nvmlDeviceGetMaxMigDeviceCount, gpu.handle, &slots) != NVML_SUCCESS) {
    return;
  }
  for (unsigned i = 0; i < slots && out.count < kMaxMigDevices; ++i) {
    nvmlDevice_t handle = nullptr;
    if (call(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu.handle, i, &handle) != NVML_SUCCESS)
      continue;
    MigDevice& device = out.rows[out.count++];
    device = MigDevice();
    device.handle = handle;
    device.index = i;
    read_device(nvml, device);
  }
}

}  // namespace smi
