// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/cuda.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::driver {
namespace {

struct ErrorDescription {
  CUresult code;
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array kErrorDescriptions{
#define CUDA_RESULT(name, value, text) ErrorDescription{name, #name, text},
#include "gpu/abi/cuda_results.def"
#undef CUDA_RESULT
};

const ErrorDescription* find_description(CUresult code) {
  for (const auto& meaning : kErrorDescriptions) {
    if (meaning.code == code) return &meaning;
  }
  return nullptr;
}

Errc errc_from_result(CUresult code) {
  switch (code) {
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_FOUND: return Errc::NotFound;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT: return Errc::Invalid;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
    case CUDA_ERROR_STUB_LIBRARY: return Errc::Unsupported;
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE: return Errc::Busy;
    case CUDA_ERROR_NOT_PERMITTED: return Errc::Denied;
    default: return Errc::Internal;
  }
}

template <class Function>
void fill(const Library& library, const char* name, Function*& pointer) {
  pointer = reinterpret_cast<Function*>(library.symbol(name));
}

}  // namespace

Result<Cuda> Cuda::load(const std::string& path) {
  Cuda cuda;
  GANTRY_TRY(cuda.library, Library::open(path));
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) \
  fill(cuda.library, #symbol, cuda.symbol);
#include "gpu/abi/cuda_entries.def"
#undef CUDA_ENTRY
#define REQUIRED(name) \
  if (cuda.name == nullptr) return missing_symbol(cuda.library, #name)
  REQUIRED(cuInit);
  REQUIRED(cuDriverGetVersion);
  REQUIRED(cuDeviceGetCount);
  REQUIRED(cuDeviceGet);
#undef REQUIRED
  return cuda;
}

std::string cuda_name(CUresult code) {
  const auto* meaning = find_description(code);
  return meaning != nullptr ? std::string(meaning->name)
                            : fmt::format("CUDA error {}", static_cast<int>(code));
}

std::string_view cuda_description(CUresult code) {
  const auto* meaning = find_description(code);
  return meaning != nullptr ? meaning->sentence : "this code belongs to a newer driver";
}

Error cuda_error(CUresult code, std::string_view call) {
  return {errc_from_result(code),
          fmt::format("{}: {}: {}", call, cuda_name(code), cuda_description(code))};
}

}  // namespace gantry::driver
