// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/nvml.hpp"

#include "sim/nvidia-smi/loader.h"

namespace smi {

bool load(Nvml& nvml) {
  nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml.library == nullptr) return false;
  nvml.nvmlErrorString =
      reinterpret_cast<decltype(nvml.nvmlErrorString)>(dlsym(nvml.library, "nvmlErrorString"));
#define GANTRY_NVML(since, name, parameters) \
  nvml.name = reinterpret_cast<decltype(nvml.name)>(dlsym(nvml.library, #name));
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML
#define GANTRY_NVML_SETTING(since, name, parameters) \
  nvml.name = reinterpret_cast<decltype(nvml.name)>(dlsym(nvml.library, #name));
#include "sim/driver/nvml_settings.def"
#undef GANTRY_NVML_SETTING
  nvml.field = reinterpret_cast<decltype(nvml.field)>(dlsym(nvml.library, "gantrySimField"));
  nvml.pci_info =
      reinterpret_cast<decltype(nvml.pci_info)>(dlsym(nvml.library, "gantrySimPciInfo"));
  nvml.reset = reinterpret_cast<decltype(nvml.reset)>(dlsym(nvml.library, "gantrySimResetGpu"));
  return true;
}

}  // namespace smi
