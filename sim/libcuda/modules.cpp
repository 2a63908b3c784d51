// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/modules.hpp"

#include "sim/libcuda/context.hpp"
#include "sim/libcuda/ptx.hpp"

#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

constexpr uint32_t kFatBinary = 0xba55ed50;
constexpr uint32_t kFatBinaryWrapper = 0x466243b1;

// Machine code: nothing in it can be run or read here, so any kernel may be in it.
bool is_machine_code(const void* image) {
  unsigned char start[4];
  memcpy(start, image, sizeof start);
  uint32_t magic = 0;
  memcpy(&magic, start, sizeof magic);
  return memcmp(start,
                "\x7f"
                "ELF",
                4) == 0 ||
         magic == kFatBinary || magic == kFatBinaryWrapper;
}

bool has_name(const Module& module, const char* name) {
  if (module.opaque) return true;
  const char* at = module.names;
  for (uint32_t i = 0; i < module.name_count; ++i) {
    if (strcmp(at, name) == 0) return true;
    at += strlen(at) + 1;
  }
  return false;
}

}  // namespace

// From CUDA 11 on both versions increase together, except that 12.5 and 12.6 both accept 8.5.
int newest_ptx(int cuda_version) {
  const int major = cuda_version / 1000;
  const int minor = cuda_version % 1000 / 10;
  if (major >= 11) {
    const int step = major == 12 && minor >= 6 ? minor - 1 : minor;
    return (major - 4) * 10 + (step > 9 ? 9 : step);
  }
  if (major == 10) return 63 + minor;
  return major == 9 ? 60 + minor : 50;
}

CUresult read_image(const void* image, const Device* device, Module& module) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* text = static_cast<const char*>(image);
  if (*text != '\0' && text[1] != '\0' && text[2] != '\0' && is_machine_code(image)) {
    module.opaque = true;
    return CUDA_SUCCESS;
  }
  const PtxSummary summary = summarise_ptx(text);
  if (!summary.is_ptx) return CUDA_ERROR_INVALID_IMAGE;
  module.names = summary.names;
  module.name_count = summary.name_count;
  module.ptx_target = summary.target;
  if (summary.version > newest_ptx(static_cast<int>(driver.machine->cuda_version)))
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  if (summary.version == 0 || summary.target == 0 || !summary.balanced)
    return CUDA_ERROR_INVALID_PTX;
  if (device != nullptr &&
      summary.target > static_cast<int>(device->card->cc_major * 10 + device->card->cc_minor))
    return CUDA_ERROR_INVALID_PTX;
  return CUDA_SUCCESS;
}

CUresult function_of(Module& module, const char* name, Function*& function) {
  for (uint32_t i = 0; i < module.function_count; ++i) {
    function = module.functions[i];
    if (strcmp(function->name, name) == 0) return CUDA_SUCCESS;
  }
  if (!has_name(module, name)) return CUDA_ERROR_NOT_FOUND;
  void* grown = realloc(module.functions, (module.function_count + 1) * sizeof(Function*));
  if (grown == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  module.functions = static_cast<Function**>(grown);
  function = make<Function>(module.context);
  char* copy = function == nullptr ? nullptr : strdup(name);
  if (copy == nullptr) {
    if (function != nullptr) destroy(function);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  function->module = &module;
  function->name = copy;
  function->dynamic_shared = 49152;
  function->carveout = -1;
  module.functions[module.function_count++] = function;
  return CUDA_SUCCESS;
}

void unload(Module& module) {
  for (uint32_t i = 0; i < module.function_count; ++i) {
    free(module.functions[i]->name);
    free(module.functions[i]->arguments);
    destroy(module.functions[i]);
  }
  free(module.functions);
  free(module.names);
  destroy(&module);
}

}  // namespace gantry::sim::cuda
