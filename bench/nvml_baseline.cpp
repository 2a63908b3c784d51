// SPDX-License-Identifier: Apache-2.0
// NVML by itself, the floor that `gantry info` is measured against.
// usage: nvml-baseline start|inventory [LIBRARY]
//   start      initialise, and each GPU's handle, UUID, name and memory
//   inventory  also the other values that are in an inventory
//   (src/gpu/probe/nvml_*.cpp)
#include "gpu/abi/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

void* library = nullptr;

// Calls a function of the library. The result is checked only if the call must succeed.
template <class... Parameters, class... Arguments>
nvmlReturn_t ask(nvmlReturn_t (*)(Parameters...), const char* name, Arguments... arguments) {
  using Function = nvmlReturn_t (*)(Parameters...);
  const auto function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  return function(arguments...);
}
#define ASK(function, ...) \
  ask(static_cast<decltype(&(function))>(nullptr), #function __VA_OPT__(, ) __VA_ARGS__)

void must(nvmlReturn_t result, const char* what) {
  if (result == NVML_SUCCESS) return;
  std::fprintf(stderr, "nvml-baseline: %s: NVML error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

void ask_identity(nvmlDevice_t gpu) {
  std::array<char, 96> text{};
  unsigned number = 0;
  int major = 0;
  int minor = 0;
  nvmlPciInfo_t pci{};
  nvmlEnableState_t state{};
  nvmlBrandType_t brand{};
  nvmlComputeMode_t mode{};
  nvmlGpuVirtualizationMode_t virtualization{};
  (void)ASK(nvmlDeviceGetPciInfo_v3, gpu, &pci);
  (void)ASK(nvmlDeviceGetMinorNumber, gpu, &number);
  (void)ASK(nvmlDeviceGetVbiosVersion, gpu, text.data(), static_cast<unsigned>(text.size()));
  (void)ASK(nvmlDeviceGetSerial, gpu, text.data(), static_cast<unsigned>(text.size()));
  (void)ASK(nvmlDeviceGetGspFirmwareVersion, gpu, text.data());
  (void)ASK(nvmlDeviceGetCudaComputeCapability, gpu, &major, &minor);
  (void)ASK(nvmlDeviceGetPersistenceMode, gpu, &state);
  (void)ASK(nvmlDeviceGetBrand, gpu, &brand);
  (void)ASK(nvmlDeviceGetArchitecture, gpu, &number);
  (void)ASK(nvmlDeviceGetComputeMode, gpu, &mode);
  (void)ASK(nvmlDeviceGetVirtualizationMode, gpu, &virtualization);
}

void ask_condition(nvmlDevice_t gpu) {
  std::array<unsigned, 4> numbers{};
  unsigned long long count = 0;
  (void)ASK(nvmlDeviceGetMigMode, gpu, &numbers[0], &numbers[1]);
  (void)ASK(nvmlDeviceGetTemperature, gpu, NVML_TEMPERATURE_GPU, &numbers[0]);
  (void)ASK(nvmlDeviceGetEnforcedPowerLimit, gpu, &numbers[0]);
  (void)ASK(nvmlDeviceGetTotalEccErrors, gpu, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
            &count);
  (void)ASK(nvmlDeviceGetTotalEccErrors, gpu, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC,
            &count);
  (void)ASK(nvmlDeviceGetRemappedRows, gpu, &numbers[0], &numbers[1], &numbers[2], &numbers[3]);
  (void)ASK(nvmlDeviceGetCurrentClocksEventReasons, gpu, &count);
  nvmlFieldValue_t field{};
  field.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  (void)ASK(nvmlDeviceGetFieldValues, gpu, 1, &field);
  nvmlEnableState_t active{};
  for (unsigned link = 0; link < 18; ++link)
    (void)ASK(nvmlDeviceGetNvLinkState, gpu, link, &active);
  unsigned none = 0;
  (void)ASK(nvmlDeviceGetComputeRunningProcesses_v3, gpu, &none, nullptr);
  none = 0;
  (void)ASK(nvmlDeviceGetGraphicsRunningProcesses_v3, gpu, &none, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  library = ::dlopen(argc > 2 ? argv[2] : "libnvidia-ml.so.1", RTLD_LAZY);
  if (library == nullptr) {
    std::fprintf(stderr, "nvml-baseline: %s\n", ::dlerror());
    return 1;
  }
  unsigned count = 0;
  must(ASK(nvmlInit_v2), "initialising");
  must(ASK(nvmlDeviceGetCount_v2, &count), "counting");
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t gpu{};
    std::array<char, 96> text{};
    nvmlMemory_t memory{};
    must(ASK(nvmlDeviceGetHandleByIndex_v2, i, &gpu), "handle");
    must(ASK(nvmlDeviceGetUUID, gpu, text.data(), static_cast<unsigned>(text.size())), "UUID");
    must(ASK(nvmlDeviceGetName, gpu, text.data(), static_cast<unsigned>(text.size())), "name");
    must(ASK(nvmlDeviceGetMemoryInfo, gpu, &memory), "memory");
    if (std::string_view(argv[1]) != "inventory") continue;
    ask_identity(gpu);
    ask_condition(gpu);
  }
  std::printf("%u\n", count);
  return 0;
}
