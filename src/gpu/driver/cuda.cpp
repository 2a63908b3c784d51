// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/cuda.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::driver {
namespace {

struct Meaning {
  CUresult code;
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array kMeanings{
#define CUDA_RESULT(name, value, text) Meaning{name, #name, text},
#include "gpu/abi/cuda_results.def"
#undef CUDA_RESULT
};

const Meaning* meaning_of(CUresult code) {
  for (const auto& meaning : kMeanings) {
    if (meaning.code == code) return &meaning;
  }
  return nullptr;
}

Errc reason_of(CUresult code) {
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
  const auto* meaning = meaning_of(code);
  return meaning != nullptr ? std::string(meaning->name)
                            : fmt::format("CUDA error {}", static_cast<int>(code));
}

std::string_view cuda_sentence(CUresult code) {
  const auto* meaning = meaning_of(code);
  return meaning != nullptr ? meaning->sentence : "a code that only newer drivers know";
}

Error cuda_error(CUresult code, std::string_view call) {
  return {reason_of(code), fmt::format("{}: {}: {}", call, cuda_name(code), cuda_sentence(code))};
}

}  // namespace gantry::driver
