// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi -L, -B and --version.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/mig_devices.hpp"
#include "sim/nvidia-smi/readings.hpp"

namespace smi {

int list_gpus(Session& session) {
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    Text name;
    Text id;
    product_name(gpu, {}, name);
    uuid(gpu, {}, id);
    printf("GPU %u: %s (UUID: %s)\n", gpu.index, name.c_str(), id.c_str());
    MigDevices devices;
    read_mig_devices(gpu, devices);
    for (unsigned d = 0; d < devices.count; ++d) {
      const MigDevice& device = devices.rows[d];
      printf("  MIG %-11s Device %2u: (UUID: %s)\n", device.profile.c_str(), device.index,
             device.uuid.c_str());
    }
  }
  return session.lost;
}

int list_excluded(Session& session) {
  unsigned count = 0;
  call(session.nvml.nvmlGetExcludedDeviceCount, &count);
  if (count == 0) {
    puts("No excluded devices found.");
    return kDone;
  }
  for (unsigned i = 0; i < count; ++i) {
    nvmlExcludedDeviceInfo_t info = {};
    if (call(session.nvml.nvmlGetExcludedDeviceInfoByIndex, i, &info) != NVML_SUCCESS) continue;
    printf("GPU %s (UUID: %s)\n", info.pciInfo.busId, info.uuid);
  }
  return kDone;
}

int show_version(Session& session) {
  const char* version = session.library_version.c_str();
  const char* minor = strchr(version, '.');
  const char* end = minor != nullptr ? strchr(minor + 1, '.') : nullptr;
  const int length =
      static_cast<int>(end != nullptr ? static_cast<size_t>(end - version) : strlen(version));
  printf("NVIDIA-SMI version  : %s\n", version);
  printf("NVML version        : %.*s\n", length, version);
  printf("DRIVER version      : %s\n", session.driver_version.c_str());
  printf("CUDA Version        : %u.%u\n", session.cuda_version / 1000,
         session.cuda_version % 1000 / 10);
  return kDone;
}

}  // namespace smi
