// SPDX-License-Identifier: Apache-2.0
// For tests: the fence's NVML in front of a driver's, in a share's directory of its own.
#pragma once

#include "abi/nvml.h"
#include "fence/host_for_test.hpp"

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <string>

namespace gantry::fence::test {

class FencedNvml {
 public:
  // Loads a copy of the fence which finds that library behind it, and `host` around it.
  FencedNvml(const Host& host, const std::string& real_library) {
    host.real("nvml", real_library);
    handle_ = ::dlopen(host.install(GANTRY_FENCE_NVML).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  template <typename Function>
  Function* get(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

}  // namespace gantry::fence::test
