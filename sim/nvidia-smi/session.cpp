// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/session.hpp"

#include <stdlib.h>
#include <strings.h>

namespace smi {
namespace {

// "13.580.159.04" -> "580.159.04": the first part is CUDA's.
void read_library_version(Session& session) {
  char version[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE] = {};
  if (call(session.nvml.nvmlSystemGetNVMLVersion, version, static_cast<unsigned>(sizeof version)) !=
      NVML_SUCCESS) {
    return;
  }
  const char* rest = strchr(version, '.');
  session.library_version.set("%s", rest != nullptr ? rest + 1 : version);
}

// "580.159.04" -> "580.159"
Text short_version(const char* version) {
  Text out;
  const char* minor = strchr(version, '.');
  const char* end = minor != nullptr ? strchr(minor + 1, '.') : nullptr;
  const size_t length = end != nullptr ? static_cast<size_t>(end - version) : strlen(version);
  out.set("%.*s", static_cast<int>(length), version);
  return out;
}

int explain_init_failure(Session& session, nvmlReturn_t error) {
  if (error == NVML_ERROR_DRIVER_NOT_LOADED) {
    printf(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that "
        "the latest NVIDIA driver is installed and running.\n\n");
    return error;
  }
  printf("Failed to initialize NVML: %s\n", words(session, error));
  read_library_version(session);
  const bool shows_library = strtoul(session.library_version.c_str(), nullptr, 10) >= 525;
  if (error == NVML_ERROR_LIB_RM_VERSION_MISMATCH && shows_library) {
    printf("NVML library version: %s\n", short_version(session.library_version.c_str()).c_str());
  }
  return error == NVML_ERROR_UNKNOWN ? 255 : error;
}

void read_versions(Session& session) {
  read_library_version(session);
  char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = {};
  call(session.nvml.nvmlSystemGetDriverVersion, version, static_cast<unsigned>(sizeof version));
  session.driver_version.set("%s", version);
  char* end = nullptr;
  session.driver_major = static_cast<unsigned>(strtoul(version, &end, 10));
  session.driver_minor = *end == '.' ? static_cast<unsigned>(strtoul(end + 1, nullptr, 10)) : 0;
  int cuda = 0;
  if (call(session.nvml.nvmlSystemGetCudaDriverVersion_v2, &cuda) != NVML_SUCCESS) {
    call(session.nvml.nvmlSystemGetCudaDriverVersion, &cuda);
  }
  session.cuda_version = static_cast<unsigned>(cuda);
}

void read_bus_id(Gpu& gpu) {
  nvmlPciInfo_t pci = {};
  const Nvml& nvml = gpu.session->nvml;
  if (call(nvml.nvmlDeviceGetPciInfo_v3, gpu.handle, &pci) != NVML_SUCCESS) return;
  const char* id = pci.busId[0] != '\0' ? pci.busId : pci.busIdLegacy;
  snprintf(gpu.bus_id, sizeof gpu.bus_id, "%s", id);
}

void explain_lost(const Session& session, unsigned index, const char* bus_id, nvmlReturn_t error) {
  // The address is shown with a domain of four digits, as in lspci.
  const char* address = strlen(bus_id) == 16 ? bus_id + 4 : bus_id;
  if (address[0] == '\0') {
    printf("Unable to determine the device handle for GPU%u: %s\n", index, words(session, error));
  } else if (session.at_least(560)) {
    printf("Unable to determine the device handle for GPU%u: %s: %s\n", index, address,
           words(session, error));
  } else {
    printf("Unable to determine the device handle for GPU %s: %s\n", address,
           words(session, error));
  }
}

// The handle of a lost GPU is either refused, or every call with it returns "lost".
nvmlReturn_t open_gpu(const Session& session, unsigned index, Gpu& gpu) {
  gpu.session = &session;
  gpu.index = index;
  const Nvml& nvml = session.nvml;
  const nvmlReturn_t error = call(nvml.nvmlDeviceGetHandleByIndex_v2, index, &gpu.handle);
  if (error != NVML_SUCCESS) {
    nvmlPciInfo_t pci = {};
    if (call(nvml.pci_info, index, &pci) == NVML_SUCCESS) {
      snprintf(gpu.bus_id, sizeof gpu.bus_id, "%s", pci.busId);
    }
    return error;
  }
  read_bus_id(gpu);
  nvmlMemory_t memory = {};
  const nvmlReturn_t alive = call(nvml.nvmlDeviceGetMemoryInfo, gpu.handle, &memory);
  return alive == NVML_ERROR_GPU_IS_LOST ? alive : NVML_SUCCESS;
}

bool ends_with(const char* text, const char* tail) {
  const size_t length = strlen(text);
  const size_t wanted = strlen(tail);
  return wanted <= length && strcasecmp(text + length - wanted, tail) == 0;
}

bool is_gpu_named(const Gpu& gpu, const char* id) {
  unsigned index = 0;
  if (parse_number(id, &index) && index == gpu.index) return true;
  if (strchr(id, ':') != nullptr && strlen(id) >= 7) return ends_with(gpu.bus_id, id);
  const Nvml& nvml = gpu.session->nvml;
  char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
  const auto size = static_cast<unsigned>(sizeof text);
  if (call(nvml.nvmlDeviceGetUUID, gpu.handle, text, size) == NVML_SUCCESS &&
      strcmp(text, id) == 0) {
    return true;
  }
  return call(nvml.nvmlDeviceGetSerial, gpu.handle, text, size) == NVML_SUCCESS &&
         strcmp(text, id) == 0;
}

bool is_wanted(const Gpu& gpu, const char* ids) {
  if (ids == nullptr) return true;
  Text id;
  while (next_item(&ids, id)) {
    if (is_gpu_named(gpu, id.c_str())) return true;
  }
  return false;
}

}  // namespace

const char* words(const Session& session, nvmlReturn_t error) {
  if (error == NVML_ERROR_GPU_IS_LOST) {
    return "GPU is lost.  Reboot the system to recover this GPU";
  }
  return session.nvml.nvmlErrorString != nullptr ? session.nvml.nvmlErrorString(error)
                                                 : "Unknown Error";
}

int open(Session& session) {
  if (!load(session.nvml)) {
    printf(
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
        "the "
        "NVIDIA Display Driver is properly installed and present in your system.\n"
        "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n");
    return NVML_ERROR_LIBRARY_NOT_FOUND;
  }
  nvmlReturn_t error = call(session.nvml.nvmlInitWithFlags, 0U);
  if (error == NVML_ERROR_FUNCTION_NOT_FOUND) error = call(session.nvml.nvmlInit_v2);
  if (error != NVML_SUCCESS) return explain_init_failure(session, error);
  read_versions(session);
  return kDone;
}

int select(Session& session, const char* ids) {
  const Nvml& nvml = session.nvml;
  call(nvml.nvmlDeviceGetCount_v2, &session.attached);
  for (unsigned i = 0; i < session.attached && session.count < kMaxListedGpus; ++i) {
    Gpu& gpu = session.gpus[session.count];
    gpu = Gpu();
    const nvmlReturn_t error = open_gpu(session, i, gpu);
    if (error == NVML_SUCCESS) {
      if (is_wanted(gpu, ids)) ++session.count;
      continue;
    }
    explain_lost(session, i, gpu.bus_id, error);
    session.lost = error == NVML_ERROR_UNKNOWN ? 255 : error;
    if (!session.at_least(560)) return session.lost;
  }
  if (session.count == 0) {
    printf("No devices were found\n");
    return session.lost != 0 ? session.lost : NVML_ERROR_NOT_FOUND;
  }
  return kDone;
}

void close(Session& session) {
  call(session.nvml.nvmlShutdown);
}

}  // namespace smi
