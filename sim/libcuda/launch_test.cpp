// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/cuda_under_test.hpp"
#include "sim/libcuda/ptx.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gantry::sim::cuda {
namespace {

using ::testing::Each;

struct Vectors {
  Vectors(const Api& cuda, int count) : n(count) {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
    const std::vector<float> ones(static_cast<std::size_t>(n), 1.0F);
    for (CUdeviceptr* pointer : {&a, &b, &c}) {
      EXPECT_EQ(cuda.cuMemAlloc_v2(pointer, bytes), CUDA_SUCCESS);
      EXPECT_EQ(cuda.cuMemcpyHtoD_v2(*pointer, ones.data(), bytes), CUDA_SUCCESS);
    }
  }
  std::vector<float> sums(const Api& cuda) const {
    std::vector<float> out(static_cast<std::size_t>(n));
    EXPECT_EQ(cuda.cuMemcpyDtoH_v2(out.data(), c, out.size() * sizeof(float)), CUDA_SUCCESS);
    return out;
  }
  CUdeviceptr a = 0, b = 0, c = 0;
  int n;
};

TEST(CudaLaunch, VectorAddReallyAdds) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda);
  Vectors v(cuda, 5000);
  void* arguments[] = {&v.a, &v.b, &v.c, &v.n};
  EXPECT_EQ(cuda.cuLaunchKernel(function, 20, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(v.sums(cuda), Each(2.0F));
}

TEST(CudaLaunch, ThreadsThatWereNotLaunchedAddNothing) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda);
  Vectors v(cuda, 1000);
  void* arguments[] = {&v.a, &v.b, &v.c, &v.n};
  EXPECT_EQ(cuda.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  const auto sums = v.sums(cuda);
  EXPECT_EQ(sums[255], 2.0F);
  EXPECT_EQ(sums[256], 1.0F);
}

TEST(CudaLaunch, TakesArgumentsInOneBufferAndLaunchAttributes) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda);
  Vectors v(cuda, 100);
  struct {
    CUdeviceptr a, b, c;
    int n;
  } packed = {v.a, v.b, v.c, v.n};
  std::size_t size = 28;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 128;
  config.blockDimY = config.blockDimZ = 1;
  EXPECT_EQ(cuda.cuLaunchKernelEx(&config, function, nullptr, extra), CUDA_SUCCESS);
  EXPECT_THAT(v.sums(cuda), Each(2.0F));
  size = 20;
  EXPECT_EQ(cuda.cuLaunchKernelEx(&config, function, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaLaunch, AnIllegalAddressEndsAllWorkOfTheProcess) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda);
  Vectors v(cuda, 1000);
  int more = 1001;
  void* arguments[] = {&v.a, &v.b, &v.c, &more};
  EXPECT_EQ(cuda.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS)
      << "who waits for it sees it";
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda.cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(CudaLaunch, ShapesTheCardCannotTakeAreRefused) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda);
  Vectors v(cuda, 10);
  void* arguments[] = {&v.a, &v.b, &v.c, &v.n};
  auto launch = [&](unsigned grid, unsigned block, unsigned shared) {
    return cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr, arguments,
                               nullptr);
  };
  EXPECT_EQ(launch(1, 2048, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1, 1U << 20U), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      cuda.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000),
      CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 1, 200000), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST(CudaLaunch, OneLaunchOnSeveralDevicesRunsOnEach) {
  const LoadedCuda cuda("h200x8");
  constexpr int kDevices = 2;
  CUDA_LAUNCH_PARAMS launches[kDevices] = {};
  unsigned long long nanoseconds = 1000000000;
  void* arguments[] = {&nanoseconds};
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  for (int i = 0; i < kDevices; ++i) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    ASSERT_EQ(cuda.cuCtxCreate_v2(&context, 0, i), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleLoadData(&module,
                                    ".version 3.0\n.target sm_30\n.address_size 64\n"
                                    ".visible .entry spin(.param .u64 ns)\n{ ret; }\n"),
              CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleGetFunction(&launches[i].function, module, "spin"), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuStreamCreate(&launches[i].hStream, 0), CUDA_SUCCESS);
    launches[i].gridDimX = launches[i].gridDimY = launches[i].gridDimZ = 1;
    launches[i].blockDimX = launches[i].blockDimY = launches[i].blockDimZ = 1;
    launches[i].kernelParams = arguments;
  }
  const auto launch = cuda.cuLaunchCooperativeKernelMultiDevice;
  ASSERT_EQ(launch(launches, kDevices, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamQuery(launches[0].hStream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda.cuStreamQuery(launches[1].hStream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(launch(nullptr, kDevices, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(launches, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(launches, kDevices, 4), CUDA_ERROR_INVALID_VALUE);
  const CUDA_LAUNCH_PARAMS second = launches[1];
  launches[1] = launches[0];
  EXPECT_EQ(launch(launches, kDevices, 0), CUDA_ERROR_INVALID_DEVICE) << "twice the same one";
  launches[1] = second;
  launches[1].hStream = nullptr;
  EXPECT_EQ(launch(launches, kDevices, 0), CUDA_ERROR_INVALID_HANDLE);
  launches[1] = second;
  launches[1].gridDimX = 1U << 20U;
  EXPECT_EQ(launch(launches, kDevices, 0), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST(CudaLaunch, AnUnknownKernelSucceedsAndTakesItsTime) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda, "somethingElse");
  CUevent start = nullptr;
  CUevent end = nullptr;
  CUstream stream = nullptr;
  float milliseconds = 0;
  ASSERT_EQ(cuda.cuEventCreate(&start, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuEventCreate(&end, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE)
      << "not recorded";
  EXPECT_EQ(cuda.cuEventRecord(start, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuLaunchKernel(function, 100000000, 1, 1, 256, 1, 1, 0, stream, nullptr, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(end, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda.cuEventQuery(end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda.cuStreamQuery(nullptr), CUDA_SUCCESS) << "the other stream is idle";
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_GT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(20));
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  EXPECT_GT(milliseconds, 50.0F);
  EXPECT_LT(milliseconds, 500.0F);
}

TEST(CudaLaunch, PerThreadDefaultStreamsAreStreamsOfTheirOwn) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda, "somethingElse");
  auto* launch = reinterpret_cast<decltype(&::cuLaunchKernel)>(cuda.symbol("cuLaunchKernel_ptsz"));
  auto* query = reinterpret_cast<decltype(&::cuStreamQuery)>(cuda.symbol("cuStreamQuery_ptsz"));
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch(function, 100000000, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(query(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda.cuStreamQuery(nullptr), CUDA_SUCCESS) << "nothing is in the legacy stream";
  EXPECT_EQ(cuda.cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
}

// A host function in a stream that blocks until it is released.
struct BlockingCallback {
  std::atomic<bool> entered = false;
  std::atomic<bool> open = false;
  std::atomic<bool> left = false;
  pid_t thread = 0;
  CUresult asked = CUDA_SUCCESS;
  const Api* cuda = nullptr;

  static void pass(void* data) {
    auto& callback = *static_cast<BlockingCallback*>(data);
    callback.thread = static_cast<pid_t>(::syscall(SYS_gettid));
    callback.asked = callback.cuda->cuCtxSynchronize();
    callback.entered = true;
    while (!callback.open) std::this_thread::yield();
    callback.left = true;
  }
};

class CudaHostFunctions : public ::testing::Test {
 protected:
  CudaHostFunctions() {
    ready(cuda_);
    EXPECT_EQ(cuda_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(cuda_.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    callback_.cuda = &cuda_;
  }
  ~CudaHostFunctions() override {
    callback_.open = true;
    EXPECT_EQ(cuda_.cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_TRUE(callback_.left);
  }
  LoadedCuda cuda_;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  BlockingCallback callback_;
};

TEST_F(CudaHostFunctions, RunOnAThreadOfTheirOwnWhileTheCallerGoesOn) {
  ASSERT_EQ(cuda_.cuLaunchHostFunc(stream_, BlockingCallback::pass, &callback_), CUDA_SUCCESS);
  while (!callback_.entered) std::this_thread::yield();
  EXPECT_NE(callback_.thread, static_cast<pid_t>(::syscall(SYS_gettid)));
  EXPECT_EQ(callback_.asked, CUDA_ERROR_NOT_PERMITTED) << "they must not call the driver";
  ASSERT_EQ(cuda_.cuEventRecord(event_, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda_.cuEventQuery(event_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda_.cuStreamQuery(nullptr), CUDA_SUCCESS) << "another stream";
  callback_.open = true;
  EXPECT_EQ(cuda_.cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_TRUE(callback_.left);
  EXPECT_EQ(cuda_.cuStreamQuery(stream_), CUDA_SUCCESS);
}

TEST_F(CudaHostFunctions, WorkBehindThemSeesWhatTheyDid) {
  static unsigned word;
  word = 0;
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  callback_.open = true;
  ASSERT_EQ(cuda_.cuLaunchHostFunc(stream_, BlockingCallback::pass, &callback_), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuLaunchHostFunc(
                stream_, [](void*) { word = 4711; }, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemcpyHtoDAsync_v2(memory, &word, sizeof word, stream_), CUDA_SUCCESS);
  unsigned copy = 0;
  ASSERT_EQ(cuda_.cuMemcpyDtoHAsync_v2(&copy, memory, sizeof copy, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(copy, 4711U);
}

TEST_F(CudaHostFunctions, AnotherStreamWaitsForThemByAnEvent) {
  CUstream other = nullptr;
  ASSERT_EQ(cuda_.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuLaunchHostFunc(stream_, BlockingCallback::pass, &callback_), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuEventRecord(event_, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuStreamQuery(other), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuStreamWaitEvent(other, event_, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  callback_.open = true;
  EXPECT_EQ(cuda_.cuStreamSynchronize(other), CUDA_SUCCESS);
  EXPECT_TRUE(callback_.left);
}

TEST_F(CudaHostFunctions, CallbacksReceiveTheirStream) {
  struct CallbackResult {
    CUstream stream = nullptr;
    CUresult status = CUDA_ERROR_UNKNOWN;
  } callback_result;
  callback_.open = true;
  ASSERT_EQ(cuda_.cuLaunchHostFunc(stream_, BlockingCallback::pass, &callback_), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuStreamAddCallback(
                stream_,
                [](CUstream stream, CUresult status, void* data) {
                  *static_cast<CallbackResult*>(data) = {stream, status};
                },
                &callback_result, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(callback_result.stream, stream_);
  EXPECT_EQ(callback_result.status, CUDA_SUCCESS);
}

TEST(CudaModule, KnowsTheKernelsOfItsPtx) {
  const LoadedCuda cuda;
  ready(cuda);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  unsigned count = 0;
  ASSERT_EQ(cuda.cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(cuda.cuModuleGetFunction(&function, module, "notThis"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuda.cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuModuleGetFunction(&function, module, "vectorAdd"), CUDA_ERROR_INVALID_HANDLE);
}

TEST(CudaModule, RefusesWhatTheDriverOrTheCardCannotTake) {
  const LoadedCuda cuda;
  ready(cuda);
  CUmodule module = nullptr;
  auto load = [&](const char* image) { return cuda.cuModuleLoadData(&module, image); };
  EXPECT_EQ(load("hello world"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load(""), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load(".version 9.9\n.target sm_90\n"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(load(".version 8.6\n.target sm_100\n"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(".version 8.0\n.target sm_90\n.entry x() {"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(cuda.cuModuleLoad(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(load("\x7f"
                 "ELF\2\1\1"),
            CUDA_SUCCESS)
      << "machine code is taken as it is";
}

TEST(CudaModule, LibrariesNeedNoContextUntilTheyAreUsed) {
  const LoadedCuda cuda;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(cuda.cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuLibraryGetKernel(&kernel, library, "vectorAdd"), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr;
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  Vectors v(cuda, 10);
  void* arguments[] = {&v.a, &v.b, &v.c, &v.n};
  EXPECT_EQ(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  EXPECT_THAT(v.sums(cuda), Each(2.0F));
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(CudaContext, CallsNeedOne) {
  const LoadedCuda cuda;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxPopCurrent_v2(&context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxPushCurrent_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuCtxGetCurrent(&context), CUDA_SUCCESS);
  EXPECT_EQ(context, nullptr);
}

TEST(CudaContext, StackAndHandlesAreChecked) {
  const LoadedCuda cuda;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  CUcontext one = nullptr;
  CUcontext two = nullptr;
  CUcontext top = nullptr;
  ASSERT_EQ(cuda.cuCtxCreate_v2(&one, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxCreate_v4(&two, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxGetCurrent(&top), CUDA_SUCCESS);
  EXPECT_EQ(top, two);
  EXPECT_EQ(cuda.cuCtxDestroy_v2(two), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxDestroy_v2(two), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxGetCurrent(&top), CUDA_SUCCESS);
  EXPECT_EQ(top, one);
  EXPECT_EQ(cuda.cuCtxSetCurrent(two), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuCtxCreate_v2(&two, 0, 7), CUDA_ERROR_INVALID_DEVICE);
}

TEST(CudaFunction, HasAttributesAndOccupancyLikeARealH200) {
  const LoadedCuda cuda;
  const CUfunction function = ready(cuda);
  int value = 0;
  int grid = 0;
  EXPECT_EQ(cuda.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 90);
  EXPECT_EQ(cuda.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 30);
  EXPECT_EQ(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 8);
  EXPECT_EQ(cuda.cuOccupancyMaxPotentialBlockSize(&grid, &value, function, nullptr, 0, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(grid, 264);
  EXPECT_EQ(value, 1024);
}

TEST(Ptx, HostileTextGivesNothingAndEnds) {
  for (const char* text :
       {".version", ".version 3", ".version 3.0 .entry", ".version 3.0 /* ", ".version \"",
        ".version 99999999999999999999.9", "}", ".version 1.0 }", "//", "/*"}) {
    const PtxSummary summary = summarise_ptx(text);
    EXPECT_EQ(summary.name_count, 0U) << text;
    std::free(summary.names);
  }
}

}  // namespace
}  // namespace gantry::sim::cuda
