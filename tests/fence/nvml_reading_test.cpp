// SPDX-License-Identifier: Apache-2.0
// Memory that the fence does not count, as a driver takes it for modules and workspaces; here by
// direct calls to the driver. The host sees it when it reads NVML, and the fence asks for a reading
// where it matters.
#include "fence/machine_with_daemon.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>

namespace gantry::fence::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kReadingLimit = 4096 * kMiB;

class NvmlReadingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gantry::test::Machine::has_libraries()) GTEST_SKIP() << "no simulated libraries";
    machine_.make({.name = "a", .memory = "4GiB"});
  }
  // The result of `work` in a process of the share; 0 is success. The fence waits at most 20 ms for
  // a reading: other load on the machine may spoil one attempt, but not all of them.
  int in_share(
      const std::function<int(const CudaLibrary& fence, const CudaLibrary& driver)>& work) {
    int status = 0;
    ShareUnderTest::until([&] { return (status = attempt(work)) == 0; });
    return status;
  }
  int attempt(const std::function<int(const CudaLibrary& fence, const CudaLibrary& driver)>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const CudaLibrary fence(machine_.fence("a"));
      const CudaLibrary driver(machine_.driver());
      sim::cuda::ready(fence);
      ::_exit(work(fence, driver));
    }
    return ShareUnderTest::wait_for_exit(pid);
  }
  // Of the whole card: no other process uses it.
  static std::uint64_t used(const CudaLibrary& driver) {
    std::size_t free = 0;
    std::size_t total = 0;
    return driver.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? total - free : 0;
  }
  static bool take(const CudaLibrary& cuda, std::uint64_t bytes, CUdeviceptr* pointer = nullptr) {
    CUdeviceptr made = 0;
    return cuda.cuMemAlloc_v2(pointer == nullptr ? &made : pointer, bytes) == CUDA_SUCCESS;
  }

  MachineWithDaemon machine_;
};

TEST_F(NvmlReadingTest, WhatIsLeftIsExactRightAfterTheFirstContext) {
  EXPECT_EQ(in_share([](const CudaLibrary& fence, const CudaLibrary& driver) {
              return sim::cuda::free_bytes(fence) == kReadingLimit - used(driver) ? 0 : 1;
            }),
            0);
}

TEST_F(NvmlReadingTest, WhatADriverTookForItselfIsSeenBeforeTheShareIsFull) {
  EXPECT_EQ(in_share([](const CudaLibrary& fence, const CudaLibrary& driver) {
              if (!take(fence, 64 * kMiB) || !take(driver, 70 * kMiB)) return 1;
              while (take(fence, 32 * kMiB)) {
              }
              if (used(driver) > kReadingLimit) return 2;
              return used(driver) + 32 * kMiB > kReadingLimit ? 0 : 3;
            }),
            0);
}

TEST_F(NvmlReadingTest, WhatADriverGaveBackIsRoomAtOnce) {
  EXPECT_EQ(in_share([](const CudaLibrary& fence, const CudaLibrary& driver) {
              CUdeviceptr pointer = 0;
              if (!take(driver, 400 * kMiB, &pointer)) return 1;
              while (take(fence, 32 * kMiB)) {
              }
              if (used(driver) > kReadingLimit) return 2;
              if (driver.cuMemFree_v2(pointer) != CUDA_SUCCESS) return 3;
              if (!take(fence, 400 * kMiB)) return 4;
              return take(fence, 64 * kMiB) ? 5 : 0;
            }),
            0);
}

// Here NVML is never read, even if the fence asks. One process of the share holds most of the
// memory and is idle; the other takes all it can get, from before the end of the daemon until long
// after the start of the next one.
TEST_F(NvmlReadingTest, TheLimitHoldsAcrossADaemonCrash) {
  constexpr std::uint64_t kQuiet = 2560 * kMiB;
  constexpr std::uint64_t kStep = 32 * kMiB;
  machine_.make({.name = "b", .memory = "4GiB", .on_violation = "stop"});
  const SharedCount ready;
  const SharedCount stop;
  const SharedCount most;
  const auto begin = [&](const std::function<void(const CudaLibrary&, const CudaLibrary&)>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (*ready == 0) ::usleep(1000);  // so that it is the first process of the share
      const CudaLibrary fence(machine_.fence("b"));
      const CudaLibrary driver(machine_.driver());
      sim::cuda::ready(fence);
      work(fence, driver);
      while (*stop == 0) ::usleep(1000);
      ::_exit(0);
    }
    EXPECT_TRUE(machine_.client().adopt("b", pid).ok());
    return pid;
  };
  const pid_t quiet = begin([&](const CudaLibrary& fence, const CudaLibrary& /*driver*/) {
    if (!take(fence, kQuiet)) ::_exit(1);
    ++*ready;
  });
  const pid_t start_busy_process = begin([&](const CudaLibrary& fence, const CudaLibrary& driver) {
    while (*ready < 2) ::usleep(1000);
    while (*stop == 0) {
      const bool taken = take(fence, kStep);
      if (!taken && *ready == 2) ++*ready;
      if (used(driver) > *most) *most = used(driver);
    }
  });
  ++*ready;
  ASSERT_TRUE(ShareUnderTest::until([&] { return *ready == 3; }));
  machine_.kill_daemon();
  machine_.start_daemon();
  EXPECT_TRUE(ShareUnderTest::until([&] {
    const auto state = machine_.client().show("b");
    return state.ok() && state->processes.size() == 1 && state->gpus[0].memory_used > kQuiet;
  })) << "the greedy process attaches to the new daemon";
  ::usleep(600'000);  // it keeps trying, and the auditor keeps checking
  ++*stop;
  EXPECT_EQ(ShareUnderTest::wait_for_exit(quiet), 0)
      << "it is behind the fence, though it is silent";
  EXPECT_EQ(ShareUnderTest::wait_for_exit(start_busy_process), 0);
  EXPECT_LE(*most, kReadingLimit);
  EXPECT_GT(*most, kReadingLimit - 2 * kStep);
}

TEST(LooksThatDoNotCome, AreWaitedForSeldom) {
  constexpr std::uint64_t kSmall = 1000 * kMiB;
  ShareUnderTest share({.memory_limit = kSmall, .flags = 0});
  const CudaLibrary cuda(share.fence());
  sim::cuda::ready(cuda);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, kSmall - 20 * kMiB), CUDA_SUCCESS);
  const auto before = share.reports(FENCE_CONTEXT);
  const auto begin = Clock::now();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, kGranule), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
    sim::cuda::free_bytes(cuda);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  EXPECT_LE(share.reports(FENCE_CONTEXT) - before, took.count() / 50 + 1);
}

}  // namespace
}  // namespace gantry::fence::test
