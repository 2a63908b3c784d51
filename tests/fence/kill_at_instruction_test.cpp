// SPDX-License-Identifier: Apache-2.0
// kill -9 after any instruction: a process is traced through its allocations and killed in the
// middle, repeatedly, each time a little later.
#include "fence/share_under_test.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gantry::fence::test {
namespace {

constexpr std::uint64_t kSteppedLimit = 100 * kMiB;

// Plain, small, pooled and mapped memory, at the edge of the limit: the slow path too.
int allocations(const CudaLibrary& cuda) {
  CUdeviceptr pointer = 0;
  CUdeviceptr rest = 0;
  cuda.cuMemAlloc_v2(&rest, kSteppedLimit - 3 * kGranule);
  cuda.cuMemAlloc_v2(&pointer, kGranule);
  cuda.cuMemFree_v2(pointer);
  cuda.cuMemAlloc_v2(&pointer, 100);
  cuda.cuMemFree_v2(pointer);
  cuda.cuMemAlloc_v2(&pointer, kSteppedLimit);
  return 0;
}

class Steps : public ::testing::Test {
 protected:
  // Lets the process run until it stops by itself; false when it has ended.
  static bool stopped(pid_t pid) {
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
  }
  static void step(pid_t pid, int steps) {
    for (int i = 0; i < steps; ++i) {
      if (::ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr) != 0 || !stopped(pid)) return;
    }
  }
  pid_t traced() {
    return share.process([this] {
      const CudaLibrary cuda(share.fence());
      sim::cuda::ready(cuda);
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 77;
      ::raise(SIGSTOP);
      return allocations(cuda);
    });
  }

  ShareUnderTest share{{.memory_limit = kSteppedLimit}};
};

TEST_F(Steps, WhereverItEndsNothingStays) {
  constexpr int kRounds = 40;
  constexpr int kStride = 467;  // instructions
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = traced();
    if (!stopped(child)) GTEST_SKIP() << "no process can be traced here";
    step(child, round * kStride);
    ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) == child && !WIFSIGNALED(status) && !WIFEXITED(status)) {
    }
    ASSERT_TRUE(ShareUnderTest::until([&] { return share.held() == 0 && share.processes() == 0; }))
        << "after " << round * kStride << " instructions";
    ASSERT_EQ(share.usage(0).pending, 0U);
  }
  // The lock of the slow path is also free.
  const pid_t last = share.process([this] {
    const CudaLibrary cuda(share.fence());
    sim::cuda::ready(cuda);
    CUdeviceptr pointer = 0;
    if (cuda.cuMemAlloc_v2(&pointer, kSteppedLimit) != CUDA_SUCCESS) return 1;
    return cuda.cuMemAlloc_v2(&pointer, kGranule) == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 2;
  });
  EXPECT_EQ(ShareUnderTest::wait_for_exit(last), 0);
}

}  // namespace
}  // namespace gantry::fence::test
