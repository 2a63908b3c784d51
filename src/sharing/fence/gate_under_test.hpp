// SPDX-License-Identifier: Apache-2.0
// For tests: a program behind the fence, on a simulated machine, with a share whose time is
// limited. Every test has a new fence and a new driver.
#pragma once

#include "sharing/fence/daemon_link_for_test.hpp"
#include "sim/libcuda/cuda_under_test.hpp"
#include "support/paths.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

namespace gantry::fence::test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

inline constexpr std::uint64_t kMs = 1'000'000;

inline constexpr const char* kSpin =
    ".version 3.0\n.target sm_30\n.address_size 64\n"
    ".visible .entry spin(.param .u64 nanoseconds)\n{ ret; }\n";

// The share: the machine's GPUs in order, time-limited, all gates open in turn 1.
class TimeLimitedShare {
 public:
  explicit TimeLimitedShare(const std::string& machine = "h200", std::uint32_t gpus = 1)
      : driver_(machine), host_(gpus) {
    const sim::cuda::Api plain([this](const char* name) { return driver_.symbol(name); });
    EXPECT_EQ(plain.cuInit(0), CUDA_SUCCESS);
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      CUuuid uuid{};
      EXPECT_EQ(plain.cuDeviceGetUuid_v2(&uuid, static_cast<CUdevice>(gpu)), CUDA_SUCCESS);
      auto& limits = host_.limits().gpu[gpu];
      std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), std::begin(limits.uuid));
      limits.queue_ns = 1000 * kMs;
      host_.set_gate(gpu, FENCE_OPEN, 1);
    }
    host_.limits().flags = FENCE_TIME_LIMITED;
    host_.real("cuda", driver_.file);
    fence_ = ::dlopen(host_.install(gantry::test::built("lib/libgantry-fence.so")).c_str(),
                      RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(fence_, nullptr) << ::dlerror();
    host_.start();
  }
  Host& host() { return host_; }
  void* symbol(const char* name) const { return ::dlsym(fence_, name); }
  FenceUsageRow& row(std::uint32_t gpu = 0) { return host_.row(gpu, 0); }
  // For a test that ends in the middle: all libraries are loaded, the daemon is connected.
  void leave_no_files() const {
    std::error_code ignored;
    std::filesystem::remove_all(host_.directory(), ignored);
    std::filesystem::remove_all(driver_.tree.root(), ignored);
  }

 private:
  sim::LoadedLibrary driver_;
  Host host_;
  void* fence_ = nullptr;
};

class FencedCuda : public TimeLimitedShare, public sim::cuda::Api {
 public:
  explicit FencedCuda(const std::string& machine = "h200", std::uint32_t gpus = 1)
      : TimeLimitedShare(machine, gpus),
        Api([this](const char* name) { return TimeLimitedShare::symbol(name); }) {}

  // Creates a context on device 0 and the kernel that runs for a given time.
  void ready() { spin_ = sim::cuda::ready(*this, "spin", kSpin); }
  CUfunction function() const { return spin_; }
  CUresult spin(std::uint64_t nanoseconds, CUstream stream = nullptr) const {
    void* arguments[] = {&nanoseconds};
    return cuLaunchKernel(spin_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
  }
  CUstream stream(unsigned int flags = CU_STREAM_NON_BLOCKING) const {
    CUstream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, flags), CUDA_SUCCESS);
    return made;
  }
  CUcontext context() const {
    CUcontext current = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    return current;
  }
  // True if the program has left the GPU at the end of this turn: it has drained, or is idle
  // anyway.
  bool leaves(std::uint32_t turn) {
    return Host::eventually([&] {
      return __atomic_load_n(&row().drained, __ATOMIC_RELAXED) == turn ||
             __atomic_load_n(&row().busy, __ATOMIC_RELAXED) == 0;
    });
  }
  bool idle() {
    return Host::eventually([&] { return __atomic_load_n(&row().busy, __ATOMIC_RELAXED) == 0; });
  }
  std::uint64_t left_at() { return __atomic_load_n(&row().drained_ns, __ATOMIC_RELAXED); }
  bool waits(std::uint32_t threads = 1) {
    return Host::eventually(
        [&] { return __atomic_load_n(&row().waiting, __ATOMIC_RELAXED) == threads; });
  }

 private:
  CUfunction spin_ = nullptr;
};

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
}

}  // namespace gantry::fence::test
