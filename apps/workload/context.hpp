// SPDX-License-Identifier: Apache-2.0
// A context on one GPU and the kernels compiled for it.
#pragma once

#include "workload/cuda.hpp"

#include <span>

// Calls the driver; on an error, returns it from the enclosing function.
#define CUDA_TRY(cuda, call, ...) GANTRY_CHECK((cuda).check((cuda).call(__VA_ARGS__), #call))

namespace gantry::workload {

// The context is destroyed with this object, together with its modules and memory.
class Context {
 public:
  explicit Context(const Cuda& cuda) : cuda_(cuda) {}
  ~Context() {
    if (context_ != nullptr) cuda_.cuCtxDestroy_v2(context_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Status create(int ordinal);
  CUdevice device() const { return device_; }

 private:
  const Cuda& cuda_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// Loads the first of these PTX texts that the driver accepts.
Result<CUmodule> load_ptx(const Cuda& cuda, std::span<const char* const> texts);

Result<CUfunction> find_kernel(const Cuda& cuda, CUmodule module, const char* name);

}  // namespace gantry::workload
