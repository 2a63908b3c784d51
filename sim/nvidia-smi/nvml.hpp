// SPDX-License-Identifier: Apache-2.0
//
// NVML as nvidia-smi uses it: loaded at run time by its soname, each entry point optional, because
// what an older library lacks is simply not shown.
#pragma once

#include "gpu/abi/nvml.h"

namespace smi {

struct Nvml {
  void* library = nullptr;
  decltype(&::nvmlErrorString) nvmlErrorString = nullptr;
#define GANTRY_NVML(since, name, parameters) decltype(&::name) name = nullptr;
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML
#define GANTRY_NVML_SETTING(since, name, parameters) nvmlReturn_t(*name) parameters = nullptr;
#include "sim/driver/nvml_settings.def"
#undef GANTRY_NVML_SETTING
  /// Rare texts of the simulated machine ("" when it has none); absent in anybody else's NVML.
  const char* (*field)(nvmlDevice_t device, const char* name) = nullptr;
  /// Address of the GPU with this index, also when NVML refuses a handle for it.
  nvmlReturn_t (*pci_info)(unsigned index, nvmlPciInfo_t* pci) = nullptr;
  nvmlReturn_t (*reset)(nvmlDevice_t device) = nullptr;
};

/// Loads the library; false when there is none.
bool load(Nvml& nvml);

/// Calls an entry point that may be absent.
template <class Function, class... Args>
nvmlReturn_t call(Function* function, Args... args) {
  return function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(args...);
}

}  // namespace smi
