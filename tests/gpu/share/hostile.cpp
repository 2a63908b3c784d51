// SPDX-License-Identifier: Apache-2.0
// hostile memory MIB | hostile time SECONDS: a program that goes past the fence on purpose. It
// opens the driver's own library by its path (HOSTILE_LIBRARY, otherwise the one below the fence),
// and takes memory, or the GPU's time, as if there were no limits.
#include "said.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <cstring>

namespace {

// Turns for so many nanoseconds of the GPU's clock.
constexpr const char* kSpin = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 spin_ns) {
  .reg .u64 %t<5>;
  .reg .pred %p;
  ld.param.u64 %t1, [spin_ns];
  mov.u64 %t2, %globaltimer;
again:
  mov.u64 %t3, %globaltimer;
  sub.u64 %t4, %t3, %t2;
  setp.lt.u64 %p, %t4, %t1;
  @%p bra again;
  ret;
}
)";

void* library() {
  const char* named = getenv("HOSTILE_LIBRARY");
  void* opened = dlopen(named != nullptr ? named : "/run/gantry/fence/cuda", RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    say("{\"failed\": \"dlopen\"}");
    exit(1);
  }
  return opened;
}

}  // namespace

#define CALL(symbol, type, ...) MUST(reinterpret_cast<type>(dlsym(driver, symbol))(__VA_ARGS__))

int main(int count, char** words) {
  if (count < 3) return 2;
  void* driver = library();
  CUcontext context = nullptr;
  CALL("cuInit", CUresult(*)(unsigned), 0);
  CALL("cuDevicePrimaryCtxRetain", CUresult(*)(CUcontext*, CUdevice), &context, 0);
  CALL("cuCtxSetCurrent", CUresult(*)(CUcontext), context);
  const long amount = atol(words[2]);
  if (strcmp(words[1], "memory") == 0) {
    CUdeviceptr pointer = 0;
    CALL("cuMemAlloc_v2", CUresult(*)(CUdeviceptr*, size_t), &pointer,
         static_cast<size_t>(amount) << 20);
    say("{\"pid\": %d, \"at_unix_ms\": %.0f}", getpid(), unix_ms());
    wait_for_a_line();
    return 0;
  }
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  CALL("cuModuleLoadData", CUresult(*)(CUmodule*, const void*), &module, kSpin);
  CALL("cuModuleGetFunction", CUresult(*)(CUfunction*, CUmodule, const char*), &spin, module,
       "spin");
  using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void**, void**);
  const auto launch = reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
  const auto wait = reinterpret_cast<CUresult (*)()>(dlsym(driver, "cuCtxSynchronize"));
  unsigned long long ns = 5000000;
  void* arguments[] = {&ns};
  say("{\"pid\": %d, \"at_unix_ms\": %.0f}", getpid(), unix_ms());
  for (const double end = now_ms() + static_cast<double>(amount) * 1e3; now_ms() < end;) {
    for (int i = 0; i < 4; ++i)
      MUST(launch(spin, 132, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    MUST(wait());
  }
  return 0;
}
