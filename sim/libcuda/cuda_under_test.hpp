// SPDX-License-Identifier: Apache-2.0
// For tests: the built libcuda.so.1 of a simulated machine. Every test loads its own copy and so
// gets a fresh driver.
#pragma once

#include "gpu/abi/cuda.h"
#include "sim/libnvidia-ml/library_under_test.hpp"
#include "sim/machine/tree.hpp"
#include "support/machine.hpp"

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace gantry::sim::cuda {

inline constexpr std::uint64_t kMiB = 1ULL << 20U;

// The entry points, by their symbols.
struct Api {
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) decltype(&::symbol) symbol = nullptr;
#include "gpu/abi/cuda_entries.def"

  template <class Resolve>
  explicit Api(Resolve resolve) {
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) \
  symbol = reinterpret_cast<decltype(symbol)>(resolve(#symbol));
#include "gpu/abi/cuda_entries.def"
  }
};

// A machine's libcuda with a machine.edit() before it starts; change() is `gantry sim inject`.
class LoadedCuda : public LoadedLibrary, public Api {
 public:
  explicit LoadedCuda(const std::string& machine = "h200", const Edit& edit = {})
      : LoadedLibrary(machine, edit), Api([this](const char* name) { return symbol(name); }) {}
};

// The library in a whole tree, with all its nodes.
class CudaInTree : public Api {
 public:
  explicit CudaInTree(const test::Machine& machine) : CudaInTree(open(machine)) {}
  ~CudaInTree() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  CudaInTree(const CudaInTree&) = delete;
  CudaInTree& operator=(const CudaInTree&) = delete;

 private:
  explicit CudaInTree(void* handle)
      : Api([handle](const char* name) { return ::dlsym(handle, name); }), handle_(handle) {}
  static void* open(const test::Machine& machine) {
    const auto marker = read_marker(machine.root());
    void* handle =
        marker.ok() ? ::dlopen(machine.path(marker->cuda_library).c_str(), RTLD_NOW) : nullptr;
    EXPECT_NE(handle, nullptr);
    return handle;
  }
  void* handle_;
};

// CUDA_VISIBLE_DEVICES or the like, for the length of a test.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedEnvironment() { ::unsetenv(name_); }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const char* name_;
};

inline constexpr const char* kPtx =
    ".version 3.0\n.target sm_30\n.address_size 64\n"
    "// .entry notThis\n"
    ".visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{ ret; "
    "}\n"
    ".entry somethingElse() { /* } */ ret; }\n";

// A context on device 0, current, and the kernel of that name.
inline CUfunction ready(const Api& cuda, const char* kernel = "vectorAdd", const char* ptx = kPtx) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuModuleGetFunction(&function, module, kernel), CUDA_SUCCESS);
  return function;
}

inline std::uint64_t free_bytes(const Api& cuda) {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cuda.cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  return free;
}

}  // namespace gantry::sim::cuda
