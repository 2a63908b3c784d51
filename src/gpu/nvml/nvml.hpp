// SPDX-License-Identifier: Apache-2.0
// NVML as a table of function pointers, one per line of abi/nvml_functions.def. load() fills it
// from the driver's libnvidia-ml.so.1; a test fills it by hand. A function that the installed
// driver does not have is nullptr: check `if (nvml.nvmlDeviceGetMigMode)` before the call.
#pragma once

#include "base/core/result.hpp"
#include "gpu/abi/nvml.h"
#include "gpu/nvml/library.hpp"

#include <string>
#include <string_view>

namespace gantry::nvml {

struct Nvml {
  // `path` as this process sees it (Host::outside). Does not call nvmlInit. Loading runs code of
  // the library, which may hang or crash, so only gantry-nvml does it.
  static Result<Nvml> load(const std::string& path);

  Library library;  // declared before the pointers, which must not outlive it
  const char* (*nvmlErrorString)(nvmlReturn_t) = nullptr;
#define GANTRY_NVML(since, name, parameters) nvmlReturn_t(*name) parameters = nullptr;
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML
};

// "NVML_ERROR_DRIVER_NOT_LOADED", or "NVML error 1234" for codes newer than our list.
std::string nvml_name(nvmlReturn_t code);
// What the code means, as a sentence without a full stop: "the NVIDIA kernel module is not loaded".
std::string_view nvml_description(nvmlReturn_t code);
// "nvmlInit_v2: NVML_ERROR_...: sentence", with the error code that a caller may branch on.
Error nvml_error(nvmlReturn_t code, std::string_view call);

}  // namespace gantry::nvml
