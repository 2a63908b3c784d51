// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/nvml.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::nvml {
namespace {

struct NvmlErrorDescription {
  nvmlReturn_t code;
  std::string_view name;
  Errc reason;
  std::string_view sentence;
};

#define MEANS(code, reason, sentence)   \
  NvmlErrorDescription {                \
    code, #code, Errc::reason, sentence \
  }
constexpr std::array kNvmlErrorDescriptions{
    MEANS(NVML_SUCCESS, Internal, "the call succeeded"),
    MEANS(NVML_ERROR_UNINITIALIZED, Invalid, "NVML was not initialised before the call"),
    MEANS(NVML_ERROR_INVALID_ARGUMENT, Invalid,
          "the driver does not accept an argument of the call"),
    MEANS(NVML_ERROR_NOT_SUPPORTED, Unsupported, "this GPU or driver cannot do it"),
    MEANS(NVML_ERROR_NO_PERMISSION, Denied, "this user has no permission to do it"),
    MEANS(NVML_ERROR_ALREADY_INITIALIZED, Exists, "NVML is already initialised"),
    MEANS(NVML_ERROR_NOT_FOUND, NotFound, "the object does not exist"),
    MEANS(NVML_ERROR_INSUFFICIENT_SIZE, Invalid, "the buffer is too small for the answer"),
    MEANS(NVML_ERROR_INSUFFICIENT_POWER, Unsupported,
          "an external power cable of the GPU is not connected"),
    MEANS(NVML_ERROR_DRIVER_NOT_LOADED, NotFound, "the NVIDIA kernel module is not loaded"),
    MEANS(NVML_ERROR_TIMEOUT, Timeout, "the driver did not answer in time"),
    MEANS(NVML_ERROR_IRQ_ISSUE, Internal, "the kernel found a problem with the GPU's interrupts"),
    MEANS(NVML_ERROR_LIBRARY_NOT_FOUND, NotFound, "NVML could not load a library it needs"),
    MEANS(NVML_ERROR_FUNCTION_NOT_FOUND, Unsupported,
          "the installed driver is too old for this function"),
    MEANS(NVML_ERROR_CORRUPTED_INFOROM, Corrupt, "the GPU's infoROM is damaged"),
    MEANS(NVML_ERROR_GPU_IS_LOST, NotFound,
          "the GPU has fallen off the bus or cannot be reached any more"),
    MEANS(NVML_ERROR_RESET_REQUIRED, Busy, "the GPU must be reset before it can be used again"),
    MEANS(NVML_ERROR_OPERATING_SYSTEM, Denied,
          "the operating system or a cgroup blocks the GPU's device node"),
    MEANS(NVML_ERROR_LIB_RM_VERSION_MISMATCH, Invalid,
          "kernel module and libraries have different driver versions; reload the module or "
          "reboot"),
    MEANS(NVML_ERROR_IN_USE, Busy, "the GPU is in use"),
    MEANS(NVML_ERROR_MEMORY, Internal, "not enough memory for the call"),
    MEANS(NVML_ERROR_NO_DATA, NotFound, "the driver has no data to answer with"),
    MEANS(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, Unsupported,
          "ECC is on, and this vGPU type cannot run with it"),
    MEANS(NVML_ERROR_INSUFFICIENT_RESOURCES, Busy, "the GPU does not have enough free resources"),
    MEANS(NVML_ERROR_FREQ_NOT_SUPPORTED, Unsupported, "the GPU cannot run at that frequency"),
    MEANS(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, Unsupported,
          "the driver does not know this version of the call's structure"),
    MEANS(NVML_ERROR_DEPRECATED, Unsupported, "the driver no longer offers this function"),
    MEANS(NVML_ERROR_NOT_READY, Busy, "the system is not ready for the request yet"),
    MEANS(NVML_ERROR_GPU_NOT_FOUND, NotFound, "no GPU was found"),
    MEANS(NVML_ERROR_INVALID_STATE, Invalid, "the GPU is not in the right state for the request"),
    MEANS(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, Unsupported, "the GPU cannot be reset in that way"),
    MEANS(NVML_ERROR_UNKNOWN, Internal, "the driver had an internal error"),
};
#undef MEANS

const NvmlErrorDescription* find_nvml_description(nvmlReturn_t code) {
  for (const auto& meaning : kNvmlErrorDescriptions) {
    if (meaning.code == code) return &meaning;
  }
  return nullptr;
}

}  // namespace

Result<Nvml> Nvml::load(const std::string& path) {
  Nvml nvml;
  GANTRY_TRY(nvml.library, Library::open(path));
  find_function(nvml.library, "nvmlErrorString", nvml.nvmlErrorString);
#define GANTRY_NVML(since, name, parameters) find_function(nvml.library, #name, nvml.name);
#include "gpu/abi/nvml_functions.def"
#undef GANTRY_NVML
  // The functions that every query needs and that every driver since 331 has.
#define REQUIRED(name) \
  if (nvml.name == nullptr) return missing_symbol(nvml.library, #name)
  REQUIRED(nvmlInit_v2);
  REQUIRED(nvmlShutdown);
  REQUIRED(nvmlSystemGetDriverVersion);
  REQUIRED(nvmlDeviceGetCount_v2);
  REQUIRED(nvmlDeviceGetHandleByIndex_v2);
  REQUIRED(nvmlDeviceGetUUID);
  REQUIRED(nvmlDeviceGetName);
#undef REQUIRED
  return nvml;
}

std::string nvml_name(nvmlReturn_t code) {
  const auto* meaning = find_nvml_description(code);
  return meaning != nullptr ? std::string(meaning->name)
                            : fmt::format("NVML error {}", static_cast<int>(code));
}

std::string_view nvml_description(nvmlReturn_t code) {
  const auto* meaning = find_nvml_description(code);
  return meaning != nullptr ? meaning->sentence : "this code belongs to a newer driver";
}

Error nvml_error(nvmlReturn_t code, std::string_view call) {
  const auto* meaning = find_nvml_description(code);
  return {meaning != nullptr ? meaning->reason : Errc::Internal,
          fmt::format("{}: {}: {}", call, nvml_name(code), nvml_description(code))};
}

}  // namespace gantry::nvml
