// SPDX-License-Identifier: Apache-2.0
// Tests the reports to the daemon: active, drained, idle.
#include "sharing/fence/gate_under_test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <set>

namespace gantry::fence::test {
namespace {

std::uint32_t last_turn(const Host& host, FenceEvent event) {
  std::uint32_t turn = 0;
  for (const FenceReport& report : host.reports()) {
    if (report.event == static_cast<std::uint32_t>(event)) turn = report.turn;
  }
  return turn;
}

TEST(GpuTurn, TheFirstLaunchIsReportedAndTheEndOfAWaitAtOnce) {
  FencedCuda cuda;
  cuda.ready();
  EXPECT_EQ(cuda.host().count(FENCE_ACTIVE), 0U);
  ASSERT_EQ(cuda.spin(1500 * kMs), CUDA_SUCCESS);
  EXPECT_TRUE(cuda.host().reported(FENCE_ACTIVE));
  EXPECT_EQ(cuda.row().busy, 1U);
  EXPECT_EQ(cuda.host().count(FENCE_IDLE), 0U);
  ASSERT_EQ(cuda.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(cuda.idle());
  EXPECT_TRUE(cuda.host().reported(FENCE_IDLE));
}

TEST(GpuTurn, EveryWayToWaitTells) {
  FencedCuda cuda;
  cuda.ready();
  CUevent event = nullptr;
  CUdeviceptr at = 0;
  char byte = 0;
  ASSERT_EQ(cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&at, 1), CUDA_SUCCESS);
  const std::function<CUresult()> ways[] = {
      [&] { return cuda.cuCtxSynchronize(); },
      [&] { return cuda.cuCtxSynchronize_v2(cuda.context()); },
      [&] {
        EXPECT_EQ(cuda.cuEventRecord(event, nullptr), CUDA_SUCCESS);
        return cuda.cuEventSynchronize(event);
      },
      [&] { return cuda.cuMemcpyDtoH_v2(&byte, at, 1); },
      [&] {
        while (cuda.cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY) {
        }
        return CUDA_SUCCESS;
      },
  };
  for (const auto& wait : ways) {
    ASSERT_EQ(cuda.spin(5 * kMs), CUDA_SUCCESS);
    ASSERT_EQ(wait(), CUDA_SUCCESS);
    EXPECT_TRUE(cuda.idle());
    std::this_thread::sleep_for(milliseconds(2));  // a pause this long is worth a report
  }
}

TEST(GpuTurn, AWaitForOneOfTwoStreamsIsNotIdle) {
  FencedCuda cuda;
  cuda.ready();
  const CUstream quick = cuda.stream();
  const CUstream slow = cuda.stream();
  ASSERT_EQ(cuda.spin(kMs, quick), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(400 * kMs, slow), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamSynchronize(quick), CUDA_SUCCESS);
  EXPECT_EQ(cuda.row().busy, 1U);
  ASSERT_EQ(cuda.cuStreamSynchronize(slow), CUDA_SUCCESS);
  EXPECT_TRUE(cuda.idle());
}

TEST(GpuTurn, WorkWithoutASynchronisationEndsInIdleToo) {
  FencedCuda cuda;
  cuda.ready();
  const std::uint64_t start = now_ns();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cuda.spin(10 * kMs), CUDA_SUCCESS);
  EXPECT_TRUE(cuda.host().reported(FENCE_IDLE));
  EXPECT_GE(now_ns() - start, 30 * kMs);
  EXPECT_TRUE(cuda.idle());
}

TEST(GpuTurn, AShutGateIsAnsweredWhenTheQueueIsEmpty) {
  FencedCuda cuda;
  cuda.ready();
  const std::uint64_t start = now_ns();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 7);
  EXPECT_TRUE(cuda.host().reported(FENCE_DRAINED));
  EXPECT_EQ(last_turn(cuda.host(), FENCE_DRAINED), 7U);
  EXPECT_EQ(cuda.row().drained, 7U);
  EXPECT_GE(cuda.left_at(), start + 200 * kMs);
  EXPECT_EQ(cuda.cuStreamQuery(nullptr), CUDA_SUCCESS);
}

TEST(GpuTurn, OnceForEachTurn) {
  FencedCuda cuda;
  cuda.ready();
  for (std::uint32_t turn = 2; turn < 12; ++turn) {
    ASSERT_EQ(cuda.spin(20 * kMs), CUDA_SUCCESS);
    cuda.host().set_gate(0, FENCE_SHUT, turn);
    EXPECT_TRUE(cuda.leaves(turn));
    cuda.host().set_gate(0, FENCE_OPEN, turn);
  }
  std::set<std::uint32_t> turns;
  for (const FenceReport& report : cuda.host().reports()) {
    if (report.event != FENCE_DRAINED) continue;
    EXPECT_TRUE(turns.insert(report.turn).second) << report.turn;
  }
  EXPECT_FALSE(turns.empty());
}

TEST(GpuTurn, AllStreamsAreWaitedFor) {
  FencedCuda cuda;
  cuda.ready();
  const std::uint64_t start = now_ns();
  ASSERT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(80 * kMs, cuda.stream()), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(kMs, cuda.stream(0)), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.leaves(2));
  EXPECT_GE(cuda.left_at(), start + 80 * kMs);
}

TEST(GpuTurn, ADestroyedStreamsWorkStillCounts) {
  FencedCuda cuda;
  cuda.ready();
  const std::uint64_t start = now_ns();
  const CUstream stream = cuda.stream();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(cuda.spin(20 * kMs, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.leaves(2));
  EXPECT_GE(cuda.left_at(), start + 80 * kMs);
}

TEST(GpuTurn, StreamsComeAndGo) {
  FencedCuda cuda;
  cuda.ready();
  for (int i = 0; i < 500; ++i) {
    const CUstream stream = cuda.stream();
    ASSERT_EQ(cuda.spin(0, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.leaves(2));
}

TEST(GpuTurn, ADestroyedContextHoldsUpNoLaunch) {
  FencedCuda cuda;
  cuda.ready();
  ASSERT_EQ(cuda.spin(20 * kMs), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(20 * kMs, cuda.stream()), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxDestroy_v2(cuda.context()), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.leaves(2));
  cuda.host().set_gate(0, FENCE_OPEN, 2);
  cuda.ready();
  EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS) << "and a new one works";
}

TEST(GpuTurn, APrimaryContextIsResetUnderWork) {
  FencedCuda cuda;
  CUcontext primary = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::uint64_t time = 10 * kMs;
  void* arguments[] = {&time};
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  for (std::uint32_t turn = 2; turn < 5; ++turn) {
    ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleLoadData(&module, kSpin), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleGetFunction(&function, module, "spin"), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    cuda.host().set_gate(0, FENCE_SHUT, turn);
    EXPECT_TRUE(cuda.leaves(turn));
    cuda.host().set_gate(0, FENCE_OPEN, turn);
  }
}

TEST(GpuTurn, PerThreadStreamsAreDrainedToo) {
  FencedCuda cuda;
  cuda.ready();
  auto* launch = reinterpret_cast<decltype(&::cuLaunchKernel)>(cuda.symbol("cuLaunchKernel_ptsz"));
  std::uint64_t time = 10 * kMs;
  void* arguments[] = {&time};
  const std::uint64_t start = now_ns();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(launch(cuda.function(), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
  }
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.leaves(2));
  EXPECT_GE(cuda.left_at(), start + 40 * kMs);
}

TEST(GpuTurn, ThreadsLaunchWhileTurnsChange) {
  FencedCuda cuda;
  cuda.ready();
  cuda.host().limits().gpu[0].queue_ns = 2 * kMs;
  const CUcontext context = cuda.context();
  std::atomic<int> running = 8;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
      CUstream stream = i % 2 == 0 ? nullptr : cuda.stream();
      for (int k = 0; k < 200; ++k) {
        EXPECT_EQ(cuda.spin(20'000, stream), CUDA_SUCCESS);
        if (k % 50 == 49 && stream != nullptr) {
          EXPECT_EQ(cuda.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
          stream = cuda.stream();
        }
        if (k % 70 == 69) {
          EXPECT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS);
        }
      }
      --running;
    });
  }
  std::uint32_t turn = 1;
  while (running != 0) {
    cuda.host().set_gate(0, FENCE_SHUT, ++turn);
    std::this_thread::sleep_for(milliseconds(2));
    cuda.host().set_gate(0, turn % 3 == 0 ? FENCE_ONE : FENCE_OPEN, turn);
    std::this_thread::sleep_for(milliseconds(3));
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cuda.row().waiting, 0U);
  EXPECT_TRUE(cuda.idle());
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
}

// In a separate process, because it ends; the program's driver and the fence's thread end together.
int in_child(const std::function<void()>& run) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    run();
    std::exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

TEST(GpuTurn, AForkedChildStartsAgainAndTheParentGoesOn) {
  FencedCuda cuda;
  cuda.ready();
  ASSERT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.leaves(2));
  const int status = in_child([&] {
    // The driver does not work here; the child must only not wait for anything of the parent's.
    if (cuda.spin(0) == CUDA_SUCCESS) ::_exit(1);
    if (cuda.cuCtxSynchronize() == CUDA_SUCCESS) ::_exit(2);
    ::_exit(0);
  });
  EXPECT_EQ(status, 0);
  cuda.host().set_gate(0, FENCE_OPEN, 2);
  EXPECT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(GpuTurn, ANewDaemonFindsInTheRowThatWeAreBusy) {
  FencedCuda cuda;
  cuda.ready();
  ASSERT_EQ(cuda.spin(1500 * kMs), CUDA_SUCCESS);
  EXPECT_TRUE(cuda.host().reported(FENCE_ACTIVE));
  cuda.host().stop();
  cuda.host().start();
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  // It attaches again by itself, and the new daemon gives it another slot.
  const FenceUsageRow& row = cuda.host().row(0, 1);
  EXPECT_TRUE(Host::eventually([&] { return __atomic_load_n(&row.busy, __ATOMIC_RELAXED) == 1; }));
  EXPECT_TRUE(cuda.host().reported(FENCE_ACTIVE, 2)) << "the new daemon is told at once";
  const CUcontext context = cuda.context();
  std::thread waits([&] {
    EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS);
  });
  EXPECT_TRUE(
      Host::eventually([&] { return __atomic_load_n(&row.waiting, __ATOMIC_RELAXED) == 1; }));
  cuda.host().set_gate(0, FENCE_OPEN, 2);
  waits.join();
}

// The end of a process while it has work and the fence's thread polls it.
TEST(GpuTurn, AProgramMayEndAtAnyMoment) {
  for (int i = 0; i < 20; ++i) {
    const int status = in_child([i] {
      FencedCuda cuda;
      cuda.ready();
      for (int k = 0; k < i * 7; ++k) {
        if (cuda.spin(100'000) != CUDA_SUCCESS) ::_exit(1);
      }
      if (i % 2 == 0) cuda.host().set_gate(0, FENCE_SHUT, 2);
      cuda.leave_no_files();  // none of these objects is destroyed
      std::exit(0);
    });
    EXPECT_EQ(status, 0) << i;
  }
}

TEST(GpuTurn, WhatIsLaunchedAfterARestIsReportedAgain) {
  FencedCuda cuda;
  cuda.ready();
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
    EXPECT_TRUE(cuda.host().reported(FENCE_ACTIVE, i));
    ASSERT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_TRUE(cuda.host().reported(FENCE_IDLE, i));
    std::this_thread::sleep_for(
        milliseconds(30));  // long enough for the completion thread to sleep
  }
  ASSERT_EQ(cuda.spin(300 * kMs), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_TRUE(cuda.host().reported(FENCE_DRAINED)) << "it has been woken";
}

}  // namespace
}  // namespace gantry::fence::test
