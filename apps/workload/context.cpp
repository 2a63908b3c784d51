// SPDX-License-Identifier: Apache-2.0
#include "workload/context.hpp"

namespace gantry::workload {

Status Context::create(int ordinal) {
  CUDA_TRY(cuda_, cuDeviceGet, &device_, ordinal);
  CUDA_TRY(cuda_, cuCtxCreate_v2, &context_, 0, device_);
  return {};
}

Result<CUmodule> load_ptx(const Cuda& cuda, std::span<const char* const> texts) {
  CUmodule module = nullptr;
  CUresult result = CUDA_ERROR_INVALID_PTX;
  for (const char* text : texts) {
    result = cuda.cuModuleLoadDataEx(&module, text, 0, nullptr, nullptr);
    if (result == CUDA_SUCCESS) break;
  }
  GANTRY_CHECK(cuda.check(result, "cuModuleLoadDataEx"));
  return module;
}

Result<CUfunction> find_kernel(const Cuda& cuda, CUmodule module, const char* name) {
  CUfunction function = nullptr;
  CUDA_TRY(cuda, cuModuleGetFunction, &function, module, name);
  return function;
}

}  // namespace gantry::workload
