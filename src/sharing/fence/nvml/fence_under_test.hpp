// SPDX-License-Identifier: Apache-2.0
// For tests: the fence's NVML in front of a driver's NVML, with its own share directory.
#pragma once

#include "gpu/abi/nvml.h"
#include "sharing/fence/daemon_link_for_test.hpp"
#include "support/paths.hpp"

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace gantry::fence::test {

inline constexpr std::uint64_t kMiB = 1ULL << 20U;
inline constexpr std::uint64_t kGiB = 1ULL << 30U;

// "GPU-00112233-..." in the form of the pages.
inline void put_uuid(const char* text, std::uint8_t (&out)[16]) {
  std::string digits;
  for (const char* at = text + 4; *at != '\0'; ++at) {
    if (*at != '-') digits += *at;
  }
  for (std::size_t i = 0; i < sizeof out; ++i) {
    out[i] = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
}

class LoadedNvml {
 public:
  explicit LoadedNvml(const std::string& file)
      : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  template <typename Function>
  Function* get(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
};

// A copy of the fence that uses this driver library and this `host`.
class FencedNvml : public LoadedNvml {
 public:
  FencedNvml(const Host& host, const std::string& real_library)
      : LoadedNvml(installed(host, real_library)) {}

 private:
  static std::string installed(const Host& host, const std::string& real_library) {
    host.real("nvml", real_library);
    return host.install(gantry::test::built("lib/libgantry-fence-nvml.so"));
  }
};

}  // namespace gantry::fence::test
