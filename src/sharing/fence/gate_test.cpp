// SPDX-License-Identifier: Apache-2.0
// The gate: when launches may run.
#include "sharing/fence/gate_under_test.hpp"
#include "support/load_monitor.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>

namespace gantry::fence::test {
namespace {

struct Form {
  const char* name;
  std::function<CUresult(const FencedCuda&, CUdeviceptr)> launch;
};

// Everything that gives the GPU work, on the default stream.
const std::vector<Form>& forms() {
  static std::uint64_t nothing = 0;
  static void* arguments[] = {&nothing};
  static const std::vector<Form> all = {
      {"cuLaunchKernel",
       [](const FencedCuda& cuda, CUdeviceptr) {
         return cuda.cuLaunchKernel(cuda.function(), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments,
                                    nullptr);
       }},
      {"cuLaunchKernel_ptsz",
       [](const FencedCuda& cuda, CUdeviceptr) {
         auto* launch =
             reinterpret_cast<decltype(&::cuLaunchKernel)>(cuda.symbol("cuLaunchKernel_ptsz"));
         return launch(cuda.function(), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
       }},
      {"cuLaunchKernelEx",
       [](const FencedCuda& cuda, CUdeviceptr) {
         CUlaunchConfig config{};
         config.gridDimX = config.gridDimY = config.gridDimZ = 1;
         config.blockDimX = config.blockDimY = config.blockDimZ = 1;
         return cuda.cuLaunchKernelEx(&config, cuda.function(), arguments, nullptr);
       }},
      {"cuLaunchCooperativeKernel",
       [](const FencedCuda& cuda, CUdeviceptr) {
         return cuda.cuLaunchCooperativeKernel(cuda.function(), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                               arguments);
       }},
      {"cuLaunchGrid",
       [](const FencedCuda& cuda, CUdeviceptr) {
         EXPECT_EQ(cuda.cuFuncSetBlockShape(cuda.function(), 1, 1, 1), CUDA_SUCCESS);
         EXPECT_EQ(cuda.cuParamSetv(cuda.function(), 0, &nothing, sizeof nothing), CUDA_SUCCESS);
         EXPECT_EQ(cuda.cuParamSetSize(cuda.function(), sizeof nothing), CUDA_SUCCESS);
         return cuda.cuLaunchGrid(cuda.function(), 1, 1);
       }},
      {"cuLaunchGridAsync",
       [](const FencedCuda& cuda, CUdeviceptr) {
         return cuda.cuLaunchGridAsync(cuda.function(), 1, 1, nullptr);
       }},
      {"cuLaunch",
       [](const FencedCuda& cuda, CUdeviceptr) { return cuda.cuLaunch(cuda.function()); }},
      {"cuMemsetD8Async", [](const FencedCuda& cuda,
                             CUdeviceptr at) { return cuda.cuMemsetD8Async(at, 1, 64, nullptr); }},
      {"cuMemsetD32_v2",
       [](const FencedCuda& cuda, CUdeviceptr at) { return cuda.cuMemsetD32_v2(at, 1, 16); }},
      {"cuMemcpyDtoDAsync_v2",
       [](const FencedCuda& cuda, CUdeviceptr at) {
         return cuda.cuMemcpyDtoDAsync_v2(at, at + 1024, 64, nullptr);
       }},
      {"cuMemcpyAsync",
       [](const FencedCuda& cuda, CUdeviceptr at) {
         return cuda.cuMemcpyAsync(at, at + 1024, 64, nullptr);
       }},
      {"cuMemcpy2DAsync_v2",
       [](const FencedCuda& cuda, CUdeviceptr at) {
         CUDA_MEMCPY2D copy{};
         copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
         copy.srcDevice = at;
         copy.dstDevice = at + 1024;
         copy.srcPitch = copy.dstPitch = 64;
         copy.WidthInBytes = 64;
         copy.Height = 1;
         return cuda.cuMemcpy2DAsync_v2(&copy, nullptr);
       }},
  };
  return all;
}

// Runs it in a thread with the program's context.
class CallInThread {
 public:
  CallInThread(const FencedCuda& cuda, const std::function<CUresult()>& call) {
    const CUcontext context = cuda.context();
    thread_ = std::thread([this, &cuda, context, call] {
      EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
      result_ = call();
      done_ = true;
    });
  }
  ~CallInThread() { join(); }
  CallInThread(const CallInThread&) = delete;
  CallInThread& operator=(const CallInThread&) = delete;
  bool done() const { return done_; }
  CUresult join() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 private:
  std::thread thread_;
  std::atomic<CUresult> result_ = CUDA_ERROR_UNKNOWN;
  std::atomic<bool> done_ = false;
};

CUdeviceptr memory(const FencedCuda& cuda) {
  CUdeviceptr at = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&at, 4096), CUDA_SUCCESS);
  return at;
}

TEST(Gate, HoldsEveryKindOfLaunchWhileShut) {
  FencedCuda cuda;
  cuda.ready();
  const CUdeviceptr at = memory(cuda);
  std::uint32_t turn = 1;
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    cuda.host().set_gate(0, FENCE_SHUT, ++turn);
    CallInThread launch(cuda, [&] { return form.launch(cuda, at); });
    EXPECT_TRUE(cuda.waits());
    EXPECT_FALSE(launch.done());
    cuda.host().set_gate(0, FENCE_OPEN, turn);
    EXPECT_EQ(launch.join(), CUDA_SUCCESS);
    EXPECT_EQ(cuda.row().waiting, 0U);
  }
}

TEST(Gate, HoldsGraphsWhileShut) {
  FencedCuda cuda;
  cuda.ready();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  const CUstream stream = cuda.stream();
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(kMs, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  CallInThread launch(cuda, [&] { return cuda.cuGraphLaunch(exec, stream); });
  EXPECT_TRUE(cuda.waits());
  EXPECT_FALSE(launch.done());
  cuda.host().set_gate(0, FENCE_OPEN, 2);
  EXPECT_EQ(launch.join(), CUDA_SUCCESS);
}

TEST(Gate, LetsCopiesFromAndToTheHostPass) {
  FencedCuda cuda;
  cuda.ready();
  const CUdeviceptr at = memory(cuda);
  char bytes[64] = {};
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(at, bytes, sizeof bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(bytes, at, sizeof bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(bytes, at, sizeof bytes), CUDA_SUCCESS);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcHost = bytes;
  copy.dstDevice = at;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = sizeof bytes;
  copy.Height = 1;
  EXPECT_EQ(cuda.cuMemcpy2DAsync_v2(&copy, nullptr), CUDA_SUCCESS);
}

TEST(Gate, NeverHoldsALaunchThatIsOnlyRecorded) {
  FencedCuda cuda;
  cuda.ready();
  const CUstream first = cuda.stream();
  const CUstream second = cuda.stream();
  CUevent fork = nullptr;
  CUevent join = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.spin(0, first), CUDA_SUCCESS) << "a stream that is known already";
  ASSERT_EQ(cuda.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cuda.spin(kMs, first), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuEventRecord(fork, first), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamWaitEvent(second, fork, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(kMs, second), CUDA_SUCCESS) << "a stream that only joined the capture";
  ASSERT_EQ(cuda.cuEventRecord(join, second), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamWaitEvent(first, join, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamEndCapture(first, &graph), CUDA_SUCCESS) << "nothing of ours ended it";
  std::size_t nodes = 0;
  ASSERT_EQ(cuda.cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 101U);
}

TEST(Gate, ACaptureWithAnOpenGateIsLeftAlone) {
  FencedCuda cuda;
  cuda.ready();
  const CUstream stream = cuda.stream();
  CUgraph graph = nullptr;
  ASSERT_EQ(cuda.spin(0, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda.spin(0), CUDA_SUCCESS) << "work on the legacy stream that the follower sees end";
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cuda.spin(kMs, stream), CUDA_SUCCESS);
  EXPECT_TRUE(cuda.host().reported(FENCE_IDLE)) << "what was recorded does not count as work";
  ASSERT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  std::size_t nodes = 0;
  ASSERT_EQ(cuda.cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 100U);
}

// On an H200, recording an event while a capture begins ends the capture, or the program.
TEST(Gate, ACaptureBeginsWhileOthersLookAfterTheStream) {
  FencedCuda cuda;
  cuda.ready();
  const CUcontext context = cuda.context();
  const CUstream stream = cuda.stream();
  const CUstream busy = cuda.stream();
  std::atomic<bool> over = false;
  std::thread turns([&] {  // at the end of a turn the completion thread polls every stream
    for (std::uint32_t turn = 2; !over; ++turn) {
      cuda.host().set_gate(0, FENCE_SHUT, turn);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      cuda.host().set_gate(0, FENCE_OPEN, turn);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    cuda.host().set_gate(0, FENCE_OPEN, 1);
  });
  std::thread neighbour([&] {
    EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
    while (!over) {
      for (int i = 0; i < 7; ++i) EXPECT_EQ(cuda.spin(10'000, busy), CUDA_SUCCESS);
      EXPECT_EQ(cuda.cuStreamSynchronize(busy), CUDA_SUCCESS);
    }
  });
  const auto until = Clock::now() + milliseconds(1500);
  int captures = 0;
  for (; Clock::now() < until && !testing::Test::HasFailure(); ++captures) {
    CUgraph graph = nullptr;
    std::size_t nodes = 0;
    EXPECT_EQ(cuda.spin(10'000, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    EXPECT_EQ(cuda.spin(1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS) << captures;
    EXPECT_EQ(cuda.cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
    EXPECT_EQ(nodes, 1U);
    EXPECT_EQ(cuda.cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  over = true;
  turns.join();
  neighbour.join();
  EXPECT_GT(captures, 20);
}

TEST(Gate, OpensWhenItsDaemonIsGone) {
  FencedCuda cuda;
  cuda.ready();
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  CallInThread launch(cuda, [&] { return cuda.spin(0); });
  EXPECT_TRUE(cuda.waits());
  cuda.host().stop();
  EXPECT_EQ(launch.join(), CUDA_SUCCESS);
  EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS);
}

// A share with a hard cap, whose daemon has beaten for the last time so long ago.
void lose_daemon(FencedCuda& cuda, std::uint32_t cap_percent, std::uint64_t silent_ns) {
  cuda.host().limits().gpu[0].cap_percent = cap_percent;
  __atomic_store_n(&cuda.host().limits().stale_ms, 50, __ATOMIC_RELAXED);
  __atomic_store_n(&cuda.host().limits().heartbeat_ns, now_ns() - silent_ns, __ATOMIC_RELAXED);
}

// The part of one second in which kernels ran, and the longest time that a launch took.
struct SecondOfWork {
  double part = 0;
  milliseconds longest{0};
};
SecondOfWork work_for_a_second(const FencedCuda& cuda) {
  SecondOfWork seen;
  int kernels = 0;
  const auto start = Clock::now();
  for (auto last = start; last < start + milliseconds(1000);) {
    EXPECT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
    EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
    ++kernels;
    const auto now = Clock::now();
    seen.longest = std::max(seen.longest, std::chrono::duration_cast<milliseconds>(now - last));
    last = now;
  }
  seen.part = kernels / 1000.0;
  return seen;
}

// Checks a second of work. The cap holds on every machine; the rest needs processors, so it
// is judged on a quiet machine only.
struct SecondExpected {
  double cap = 0;
  double least = 0;
  milliseconds longest{1000};
};

// A second without a daemon, which `prepare` begins. It is tried again only if other programs had
// the processors: one stall on a quiet machine is a fault.
void expect_second_without_daemon(const std::function<void(FencedCuda&)>& prepare,
                                  const SecondExpected& expected) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    FencedCuda cuda;
    cuda.ready();
    ASSERT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
    prepare(cuda);
    lose_daemon(cuda, 50, 0);
    gantry::test::LoadMonitor monitor;
    const SecondOfWork seen = work_for_a_second(cuda);
    const bool quiet = monitor.was_quiet();
    EXPECT_LT(seen.part, expected.cap);
    if (seen.part > expected.least && seen.longest < expected.longest) return;
    if (quiet) FAIL() << seen.part << ", longest " << seen.longest.count() << " ms";
  }
}

TEST(Gate, WithoutADaemonAProcessKeepsToItsCap) {
  for (const auto state : {FENCE_OPEN, FENCE_SHUT}) {
    SCOPED_TRACE(state);
    expect_second_without_daemon([&](FencedCuda& cuda) { cuda.host().set_gate(0, state, 2); },
                                 {.cap = 0.53, .least = 0.35, .longest = milliseconds(100)});
  }
}

TEST(Gate, SeveralProcessesWithoutADaemonDivideTheCap) {
  expect_second_without_daemon(
      [](FencedCuda& cuda) {
        cuda.host().process(1).host_pid = 1;
        cuda.host().row(0, 1).busy = 1;
      },
      {.cap = 0.28, .least = 0.15});
}

TEST(Gate, AnExplicitCapIsRefusedAfterTenSecondsWithoutADaemon) {
  FencedCuda cuda;
  cuda.ready();
  ASSERT_EQ(cuda.spin(kMs), CUDA_SUCCESS);
  lose_daemon(cuda, 50, 11'000 * kMs);
  EXPECT_TRUE(Host::eventually([&] { return cuda.spin(kMs) == CUDA_ERROR_SYSTEM_NOT_READY; }));
  EXPECT_EQ(cuda.spin(kMs), CUDA_ERROR_SYSTEM_NOT_READY);
  cuda.host().beat();
  EXPECT_EQ(cuda.spin(kMs), CUDA_SUCCESS) << "it is back";
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(Gate, WithoutACapNoLaunchIsRefused) {
  FencedCuda cuda;
  cuda.ready();
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  lose_daemon(cuda, 0, 11'000 * kMs);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS);
}

TEST(Gate, EachGpuHasItsOwn) {
  FencedCuda cuda("h200x8", 2);
  cuda.ready();
  cuda.host().set_gate(1, FENCE_SHUT, 2);
  EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS);
  CUcontext other = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuda.cuCtxCreate_v2(&other, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuModuleLoadData(&module, kSpin), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuModuleGetFunction(&function, module, "spin"), CUDA_SUCCESS);
  std::uint64_t nothing = 0;
  void* arguments[] = {&nothing};
  CallInThread launch(cuda, [&] {
    return cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  });
  EXPECT_TRUE(Host::eventually(
      [&] { return __atomic_load_n(&cuda.row(1).waiting, __ATOMIC_RELAXED) == 1; }));
  CUcontext popped = nullptr;
  ASSERT_EQ(cuda.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS) << "back on the first GPU";
  cuda.host().set_gate(1, FENCE_OPEN, 2);
  EXPECT_EQ(launch.join(), CUDA_SUCCESS);
}

TEST(Gate, WithoutALimitInTimeNothingIsReported) {
  FencedCuda cuda;
  cuda.host().limits().flags = 0;
  cuda.ready();
  cuda.host().set_gate(0, FENCE_SHUT, 2);
  EXPECT_EQ(cuda.spin(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuda.row().launches, 0U);
  EXPECT_EQ(cuda.host().count(FENCE_ACTIVE), 0U);
}

// How much of the launched work cannot have ended yet, in milliseconds.
double ahead(std::uint64_t launched_ns, std::uint64_t since_ns) {
  const std::uint64_t passed = now_ns() - since_ns;
  return launched_ns > passed ? static_cast<double>(launched_ns - passed) / 1e6 : 0;
}

TEST(Gate, BoundsWhatWaitsInTheQueueByTime) {
  FencedCuda cuda;
  cuda.ready();
  cuda.host().limits().gpu[0].queue_ns = 20 * kMs;
  const std::uint64_t start = now_ns();
  double most = 0;
  for (std::uint64_t i = 1; i <= 150; ++i) {
    ASSERT_EQ(cuda.spin(2 * kMs), CUDA_SUCCESS);
    most = std::max(most, ahead(i * 2 * kMs, start));
  }
  EXPECT_LT(most, 30.0);
  EXPECT_GT(most, 5.0) << "the GPU must not run dry";
  EXPECT_NEAR(static_cast<double>(cuda.row().cost_ns), 2e6, 1e6);
}

TEST(Gate, LeavesSomethingToDoWhateverTheBound) {
  FencedCuda cuda;
  cuda.ready();
  cuda.host().limits().gpu[0].queue_ns = 1;
  const std::uint64_t start = now_ns();
  double least = 1e9;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    ASSERT_EQ(cuda.spin(20 * kMs), CUDA_SUCCESS);
    if (i > 3) least = std::min(least, ahead(i * 20 * kMs, start));
  }
  EXPECT_GT(least, 20.0) << "one that runs, and another one";
}

TEST(Gate, GraphsCountByWhatTheyCost) {
  FencedCuda cuda;
  cuda.ready();
  cuda.host().limits().gpu[0].queue_ns = 40 * kMs;
  const CUstream stream = cuda.stream();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(cuda.spin(kMs, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS) << "learned";
  const std::uint64_t start = now_ns();
  double most = 0;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    ASSERT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    most = std::max(most, ahead(i * 5 * kMs, start));
  }
  EXPECT_LT(most, 70.0);
}

TEST(Gate, InOneOnlyOneLaunchIsInFlight) {
  FencedCuda cuda;
  cuda.ready();
  const CUstream streams[] = {cuda.stream(), cuda.stream()};
  ASSERT_EQ(cuda.spin(5 * kMs), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  cuda.host().set_gate(0, FENCE_ONE, 1);
  const std::uint64_t start = now_ns();
  double most = 0;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    ASSERT_EQ(cuda.spin(5 * kMs, streams[i % 2]), CUDA_SUCCESS);
    most = std::max(most, ahead(i * 5 * kMs, start));
  }
  EXPECT_LE(most, 5.1) << "on whichever stream";
}

// A request in the middle of a kernel makes that kernel seem long, and the gate changes afterwards.
// The learned cost of the others must not change, because they are launched just before the last
// one ends according to it.
TEST(Gate, AKernelCostsItsOwnTimeOnly) {
  FencedCuda cuda;
  cuda.ready();
  std::uint32_t turn = 1;
  cuda.host().set_gate(0, FENCE_ONE, turn);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(cuda.spin(5 * kMs), CUDA_SUCCESS);
  for (int request = 0; request < 6; ++request) {
    ASSERT_EQ(cuda.spin(30 * kMs), CUDA_SUCCESS);
    cuda.host().set_gate(0, FENCE_SHUT, ++turn);
    cuda.host().set_gate(0, FENCE_ONE, turn);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(cuda.spin(5 * kMs), CUDA_SUCCESS);
  }
  EXPECT_LT(cuda.row().cost_ns, 8 * kMs);
}

}  // namespace
}  // namespace gantry::fence::test
