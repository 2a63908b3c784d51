// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API as a table of function pointers, one per line of abi/cuda_entries.def. load()
// fills it from the driver's libcuda.so.1; a function that this driver does not have is nullptr.
#pragma once

#include "base/core/result.hpp"
#include "gpu/abi/cuda.h"
#include "gpu/driver/library.hpp"

#include <string>
#include <string_view>

namespace gantry::driver {

struct Cuda {
  // Does not call cuInit. See Nvml::load about hangs.
  static Result<Cuda> load(const std::string& path);

  Library library;  // declared before the pointers, which must not outlive it
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) \
  CUresult(*symbol) parameters = nullptr;
#include "gpu/abi/cuda_entries.def"
#undef CUDA_ENTRY
#undef CUDA_ENTRY_EARLY
#undef CUDA_ENTRY_PTSZ
#undef CUDA_ENTRY_PTDS
};

// "CUDA_ERROR_NO_DEVICE", or "CUDA error 1234".
std::string cuda_name(CUresult code);
// The text of cuGetErrorString for the code.
std::string_view cuda_description(CUresult code);
// "cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
Error cuda_error(CUresult code, std::string_view call);

}  // namespace gantry::driver
