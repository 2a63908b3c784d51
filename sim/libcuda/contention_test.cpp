// SPDX-License-Identifier: Apache-2.0
// Processes that share a GPU's time.
#include "sim/libcuda/cuda_under_test.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <functional>

namespace gantry::sim::cuda {
namespace {

constexpr const char* kSpinPtx =
    ".version 3.0\n.target sm_30\n.address_size 64\n"
    ".visible .entry spin(.param .u64 nanoseconds)\n{ ret; }\n";

constexpr unsigned long long kMs = 1000000;

CUresult spin(const Api& cuda, CUfunction function, unsigned long long nanoseconds,
              CUstream stream) {
  void* arguments[] = {&nanoseconds};
  return cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

// Another process on the same machine: it reports when it is ready and runs until it is killed.
class Neighbour {
 public:
  explicit Neighbour(const std::function<bool()>& work) {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      const char word = work() ? 'y' : 'n';
      if (::write(ready[1], &word, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char word = 'n';
    EXPECT_EQ(::read(ready[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    ::close(ready[0]);
  }
  ~Neighbour() { stop(); }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// A process with more work than any test waits for.
Neighbour greedy(const Api& cuda) {
  return Neighbour([&cuda] {
    const CUfunction function = ready(cuda, "spin", kSpinPtx);
    return spin(cuda, function, 100000 * kMs, nullptr) == CUDA_SUCCESS;
  });
}

// How long a kernel takes on the GPU's clock. What runs before it covers the time until it is
// enqueued, so that the figure does not depend on how busy the CPU is.
float timed_spin(const Api& cuda, CUfunction function, unsigned long long nanoseconds) {
  CUevent start = nullptr;
  CUevent end = nullptr;
  float milliseconds = 0;
  EXPECT_EQ(cuda.cuEventCreate(&start, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventCreate(&end, 0), CUDA_SUCCESS);
  EXPECT_EQ(spin(cuda, function, 20 * kMs, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(start, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(spin(cuda, function, nanoseconds, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(end, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventSynchronize(end), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventDestroy_v2(start), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventDestroy_v2(end), CUDA_SUCCESS);
  return milliseconds;
}

TEST(CudaContention, ASpinKernelTakesTheTimeItIsGiven) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  EXPECT_FLOAT_EQ(timed_spin(cuda, function, 30 * kMs), 30.0F);
}

TEST(CudaContention, AKernelBesideABusyProcessTakesTwiceItsTime) {
  const LoadedCuda cuda;
  const Neighbour other = greedy(cuda);
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  EXPECT_NEAR(timed_spin(cuda, function, 100 * kMs), 212.0F, 6.0F)
      << "slices of 2 ms, and 0.12 ms for each change between them";
}

TEST(CudaContention, AThirdProcessTakesItsThird) {
  const LoadedCuda cuda;
  const Neighbour one = greedy(cuda);
  const Neighbour other = greedy(cuda);
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  EXPECT_NEAR(timed_spin(cuda, function, 50 * kMs), 159.0F, 8.0F);
}

TEST(CudaContention, AKilledProcessLeavesTheQueueAtOnce) {
  const LoadedCuda cuda;
  Neighbour other = greedy(cuda);
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  EXPECT_GT(timed_spin(cuda, function, 20 * kMs), 30.0F);
  other.stop();
  EXPECT_FLOAT_EQ(timed_spin(cuda, function, 50 * kMs), 50.0F);
}

// The view of an auditor on the host.
TEST(CudaContention, NvmlTellsWhoHasHowMuchOfTheTime) {
  const test::Machine machine("h200");
  const CudaInTree cuda(machine);
  const Neighbour one = greedy(cuda);
  const Neighbour other = greedy(cuda);
  const auto marker = read_marker(machine.root());
  ASSERT_TRUE(marker.ok());
  void* nvml = ::dlopen(machine.path(marker->nvml_library).c_str(), RTLD_NOW);
  ASSERT_NE(nvml, nullptr);
  auto* init = reinterpret_cast<decltype(&::nvmlInit_v2)>(::dlsym(nvml, "nvmlInit_v2"));
  auto* find = reinterpret_cast<decltype(&::nvmlDeviceGetHandleByIndex_v2)>(
      ::dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"));
  auto* ask = reinterpret_cast<decltype(&::nvmlDeviceGetProcessUtilization)>(
      ::dlsym(nvml, "nvmlDeviceGetProcessUtilization"));
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(init(), NVML_SUCCESS);
  ASSERT_EQ(find(0, &device), NVML_SUCCESS);
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  timed_spin(cuda, function, 300 * kMs);
  nvmlProcessUtilizationSample_t samples[8] = {};
  unsigned int count = 8;
  ASSERT_EQ(ask(device, samples, &count, 0), NVML_SUCCESS);
  unsigned int seen = 0;
  for (unsigned int i = 0; i < count; ++i) {
    if (samples[i].pid != static_cast<unsigned>(one.pid()) &&
        samples[i].pid != static_cast<unsigned>(other.pid()))
      continue;
    ++seen;
    EXPECT_GT(samples[i].smUtil, 25U);
    EXPECT_LT(samples[i].smUtil, 75U);
  }
  EXPECT_EQ(seen, 2U);
  // The library stays loaded: it never frees its state, which would look like a leak.
}

TEST(CudaContention, GpusAreContendedForOneByOne) {
  const LoadedCuda cuda("h200x8");
  const Neighbour other = greedy(cuda);
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuda.cuCtxCreate_v2(&context, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuModuleLoadData(&module, kSpinPtx), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuModuleGetFunction(&function, module, "spin"), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(timed_spin(cuda, function, 30 * kMs), 30.0F) << "the other is on GPU 0";
}

TEST(CudaContention, TimeCanRunFasterThanTheWalls) {
  const ScopedEnvironment speed("GANTRY_SIM_SPEED", "20");
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  EXPECT_FLOAT_EQ(timed_spin(cuda, function, 2000 * kMs), 2000.0F);
}

TEST(CudaLegacyLaunch, TheFunctionKeepsItsShapeAndArguments) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda, "spin", kSpinPtx);
  unsigned long long nanoseconds = 10 * kMs;
  EXPECT_EQ(cuda.cuLaunch(function), CUDA_ERROR_INVALID_VALUE) << "it has no shape yet";
  EXPECT_EQ(cuda.cuFuncSetBlockShape(function, 32, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuFuncSetBlockShape(function, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuParamSetv(function, 0, &nanoseconds, sizeof nanoseconds), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuParamSeti(function, -4, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuParamSetSize(function, sizeof nanoseconds), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuLaunchGrid(function, 2, 2), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda.cuLaunchGridAsync(function, 1, 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::sim::cuda
