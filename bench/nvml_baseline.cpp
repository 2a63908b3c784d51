// SPDX-License-Identifier: Apache-2.0
// Loads NVML, initialises it and asks each GPU the few things any inventory needs. Prints the
// count. usage: nvml-baseline [LIBRARY]
#include "abi/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace {

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  void* library = ::dlopen(argc > 1 ? argv[1] : "libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "nvml-baseline: %s\n", ::dlerror());
    return 1;
  }
  const auto init = symbol<decltype(nvmlInit_v2)>(library, "nvmlInit_v2");
  const auto count_of = symbol<decltype(nvmlDeviceGetCount_v2)>(library, "nvmlDeviceGetCount_v2");
  const auto handle_of =
      symbol<decltype(nvmlDeviceGetHandleByIndex_v2)>(library, "nvmlDeviceGetHandleByIndex_v2");
  const auto uuid_of = symbol<decltype(nvmlDeviceGetUUID)>(library, "nvmlDeviceGetUUID");
  const auto name_of = symbol<decltype(nvmlDeviceGetName)>(library, "nvmlDeviceGetName");
  const auto memory_of =
      symbol<decltype(nvmlDeviceGetMemoryInfo)>(library, "nvmlDeviceGetMemoryInfo");
  const auto shutdown = symbol<decltype(nvmlShutdown)>(library, "nvmlShutdown");
  if (init == nullptr || count_of == nullptr || handle_of == nullptr || uuid_of == nullptr ||
      name_of == nullptr || memory_of == nullptr || shutdown == nullptr) {
    std::fprintf(stderr, "nvml-baseline: a function is missing\n");
    return 1;
  }
  unsigned count = 0;
  if (init() != NVML_SUCCESS || count_of(&count) != NVML_SUCCESS) return 1;
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t device{};
    std::array<char, 96> text{};
    nvmlMemory_t memory{};
    if (handle_of(i, &device) != NVML_SUCCESS) return 1;
    if (uuid_of(device, text.data(), text.size()) != NVML_SUCCESS) return 1;
    if (name_of(device, text.data(), text.size()) != NVML_SUCCESS) return 1;
    if (memory_of(device, &memory) != NVML_SUCCESS) return 1;
  }
  shutdown();
  std::printf("%u\n", count);
  return 0;
}
