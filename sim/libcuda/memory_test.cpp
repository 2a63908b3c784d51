// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/cuda_under_test.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace gantry::sim::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

class CudaMemory : public ::testing::Test {
 protected:
  CudaMemory() {
    ready(cuda_);
    start_ = free_bytes(cuda_);
  }
  std::int64_t used() { return static_cast<std::int64_t>(start_ - free_bytes(cuda_)); }
  static constexpr std::int64_t mib(std::int64_t count) {
    return count * static_cast<std::int64_t>(kMiB);
  }

  LoadedCuda cuda_;
  std::uint64_t start_ = 0;
};

TEST_F(CudaMemory, AContextTakesItsShare) {
  std::size_t total = 0;
  EXPECT_EQ(cuda_.cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total - start_, 548995072U) << "as measured on an H200";
}

TEST_F(CudaMemory, SmallAllocationsShareAGranule) {
  CUdeviceptr one = 0;
  CUdeviceptr two = 0;
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&one, 100), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&two, 100), CUDA_SUCCESS);
  EXPECT_EQ(two - one, 512U);
  EXPECT_EQ(used(), mib(2));
  CUdeviceptr base = 0;
  std::size_t size = 0;
  EXPECT_EQ(cuda_.cuMemGetAddressRange_v2(&base, &size, two + 50), CUDA_SUCCESS);
  EXPECT_EQ(base, two);
  EXPECT_EQ(size, 100U);
  EXPECT_EQ(cuda_.cuMemFree_v2(one), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(2));
  EXPECT_EQ(cuda_.cuMemFree_v2(two), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0);
}

TEST_F(CudaMemory, LargeAllocationsTakeWholeGranules) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, 3 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(4));
  EXPECT_EQ(cuda_.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0);
}

TEST_F(CudaMemory, BadRequestsAreRefused) {
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemAllocPitch_v2(&pointer, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemFree_v2(pointer + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemory, EndsWhereTheCardEnds) {
  CUdeviceptr pointer = 0;
  std::size_t total = 0;
  EXPECT_EQ(cuda_.cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, total), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, ~static_cast<std::size_t>(0)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(used(), 0);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, (start_ - 2 * kMiB) / (2 * kMiB) * 2 * kMiB),
            CUDA_SUCCESS)
      << "140 GB are promised, not committed";
  CUdeviceptr more = 0;
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&more, 64 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda_.cuMemAllocManaged(&more, 64 * kMiB, CU_MEM_ATTACH_GLOBAL),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda_.cuMemAllocAsync(&more, 64 * kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuda_.cuMemCreate(&handle, 64 * kMiB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  EXPECT_EQ(cuda_.cuMemCreate(&handle, 64 * kMiB, &prop, 0), CUDA_SUCCESS)
      << "host memory is not the card's";
  EXPECT_EQ(cuda_.cuMemRelease(handle), CUDA_SUCCESS);
  void* host = nullptr;
  EXPECT_EQ(cuda_.cuMemHostAlloc(&host, 64 * kMiB, 0), CUDA_SUCCESS);
}

TEST_F(CudaMemory, CopiesStayInsideTheirAllocation) {
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&pointer, 1000), CUDA_SUCCESS);
  std::vector<char> in(1000);
  std::iota(in.begin(), in.end(), '\0');
  std::vector<char> out(1000);
  EXPECT_EQ(cuda_.cuMemcpyHtoD_v2(pointer, in.data(), 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemcpyDtoH_v2(out.data(), pointer, 1000), CUDA_SUCCESS);
  EXPECT_THAT(out, ElementsAreArray(in));
  EXPECT_EQ(cuda_.cuMemcpyHtoD_v2(pointer + 998, in.data(), 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemcpyHtoD_v2(0x10, in.data(), 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemcpyDtoH_v2(out.data(), pointer, ~static_cast<std::size_t>(0)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(pointer, 7, 1001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD32_v2(pointer + 1, 7, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(pointer, 7, 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemcpyDtoH_v2(out.data(), pointer, 1000), CUDA_SUCCESS);
  EXPECT_THAT(out, Each('\7'));
}

TEST_F(CudaMemory, RowsAreCopiedByTheirPitch) {
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(cuda_.cuMemAllocPitch_v2(&pointer, &pitch, 6, 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 512U);
  std::vector<char> in(24);
  std::iota(in.begin(), in.end(), '\0');
  std::vector<char> out(24);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = 6;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = pointer;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 6;
  copy.Height = 4;
  EXPECT_EQ(cuda_.cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemcpyDtoH_v2(out.data(), pointer + 3 * pitch, 6), CUDA_SUCCESS);
  EXPECT_EQ(out[0], 18);
  copy.Height = 5;
  EXPECT_EQ(cuda_.cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemory, ArraysAreChargedAndHoldTheirRows) {
  CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  ASSERT_EQ(cuda_.cuArrayCreate_v2(&array, &shape), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(4));
  float in = 2.5F;
  float out = 0;
  EXPECT_EQ(cuda_.cuMemcpyHtoA_v2(array, 4096, &in, sizeof in), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemcpyAtoH_v2(&out, array, 4096, sizeof out), CUDA_SUCCESS);
  EXPECT_EQ(out, 2.5F);
  EXPECT_EQ(cuda_.cuMemcpyHtoA_v2(array, 4 * kMiB - 2, &in, sizeof in), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(used(), 0);
}

TEST_F(CudaMemory, CopiesStayInsideTheirArray) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 4096;
  shape.Height = 1;
  shape.Depth = 2;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  shape.NumChannels = 1;
  CUarray array = nullptr;
  ASSERT_EQ(cuda_.cuArray3DCreate_v2(&array, &shape), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&pointer, std::size_t{20000} * 4096), CUDA_SUCCESS);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = pointer;
  copy.WidthInBytes = 4096;
  copy.Height = 1;
  copy.Depth = 2;
  EXPECT_EQ(cuda_.cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
  copy.srcZ = 1;
  EXPECT_EQ(cuda_.cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.srcZ = 0;
  copy.Depth = 20000;
  EXPECT_EQ(cuda_.cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.Depth = 1;
  copy.srcXInBytes = ~static_cast<std::size_t>(0) - 4000;
  EXPECT_EQ(cuda_.cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE) << "the sum wraps around";
}

TEST_F(CudaMemory, AddressesBeyondTheProcessAreRefused) {
  CUdeviceptr address = 0;
  const std::size_t wraps = (~std::size_t{0} - (std::size_t{1} << 32U)) + 1 + 2 * kMiB;
  EXPECT_EQ(cuda_.cuMemAddressReserve(&address, wraps, std::size_t{1} << 32U, 0, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda_.cuMemAddressReserve(&address, 2 * kMiB, std::size_t{1} << 63U, 0, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda_.cuMemAddressReserve(&address, 2 * kMiB, std::size_t{1} << 32U, 0, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(address % (std::size_t{1} << 32U), 0U);
  EXPECT_EQ(cuda_.cuMemAddressFree(address, 2 * kMiB), CUDA_SUCCESS);
}

TEST_F(CudaMemory, APoolKeepsFreedMemoryUntilASynchronisation) {
  CUdeviceptr one = 0;
  CUdeviceptr two = 0;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuda_.cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAllocAsync(&one, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(32));
  EXPECT_EQ(cuda_.cuMemAllocAsync(&two, 40 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(64));
  EXPECT_EQ(cuda_.cuMemFreeAsync(one, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemFreeAsync(two, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(64));
  EXPECT_EQ(cuda_.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0);
  std::uint64_t keep = ~0ULL;
  EXPECT_EQ(cuda_.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
            CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAllocAsync(&one, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemFreeAsync(one, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(32)) << "below the threshold nothing is given back";
  EXPECT_EQ(cuda_.cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0);
}

TEST_F(CudaMemory, MappedMemoryLivesUntilItIsReleasedAndUnmapped) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle[2] = {};
  CUdeviceptr address = 0;
  EXPECT_EQ(cuda_.cuMemCreate(&handle[0], 2 * kMiB + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuda_.cuMemCreate(&handle[0], 2 * kMiB, &prop, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemCreate(&handle[1], 2 * kMiB, &prop, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemAddressReserve(&address, 4 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(4));
  EXPECT_EQ(cuda_.cuMemMap(address, 2 * kMiB, 0, handle[0], 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemMap(address, 2 * kMiB, 0, handle[1], 0), CUDA_ERROR_INVALID_VALUE)
      << "taken";
  EXPECT_EQ(cuda_.cuMemMap(address + 2 * kMiB, 2 * kMiB, 0, handle[1], 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(address, 1, 16), CUDA_ERROR_INVALID_VALUE) << "no access yet";
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_EQ(cuda_.cuMemSetAccess(address, 4 * kMiB, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(address, 9, 4 * kMiB), CUDA_SUCCESS) << "over both";
  char out[2] = {};
  EXPECT_EQ(cuda_.cuMemcpyDtoH_v2(out, address + 2 * kMiB - 1, 2), CUDA_SUCCESS);
  EXPECT_EQ(out[0], 9);
  EXPECT_EQ(out[1], 9);
  EXPECT_EQ(cuda_.cuMemRelease(handle[0]), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(4));
  EXPECT_EQ(cuda_.cuMemAddressFree(address, 4 * kMiB), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  EXPECT_EQ(cuda_.cuMemUnmap(address, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(2));
  EXPECT_EQ(cuda_.cuMemRelease(handle[1]), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0);
  EXPECT_EQ(cuda_.cuMemAddressFree(address, 4 * kMiB), CUDA_SUCCESS);
}

TEST_F(CudaMemory, PointersTellWhatTheyAre) {
  CUdeviceptr managed = 0;
  void* host = nullptr;
  ASSERT_EQ(cuda_.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemAllocHost_v2(&host, 4096), CUDA_SUCCESS);
  *reinterpret_cast<char*>(managed) = 'x';  // one address for both sides
  unsigned value = 0;
  EXPECT_EQ(cuda_.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 1U);
  EXPECT_EQ(cuda_.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        reinterpret_cast<CUdeviceptr>(host)),
            CUDA_SUCCESS);
  EXPECT_EQ(value, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_EQ(cuda_.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        reinterpret_cast<CUdeviceptr>(&value)),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemory, ManyCopiesTravelInOneCall) {
  CUstream stream = nullptr;
  CUdeviceptr pool = 0;
  ASSERT_EQ(cuda_.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&pool, 4096), CUDA_SUCCESS);
  unsigned words[4] = {1, 2, 3, 4};
  const auto address = [](void* at) { return reinterpret_cast<CUdeviceptr>(at); };
  CUdeviceptr to[] = {pool, pool + 1024, address(&words[2]), address(&words[3])};
  CUdeviceptr from[] = {address(&words[0]), address(&words[1]), pool, pool + 1024};
  std::size_t sizes[] = {4, 4, 4, 4};
  CUmemcpyAttributes in_order{};
  in_order.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  std::size_t first = 0;
  std::size_t failed = 99;
  const auto copy = [&](std::size_t count, CUstream in) {
    return cuda_.cuMemcpyBatchAsync(to, from, sizes, count, &in_order, &first, 1, &failed, in);
  };
  ASSERT_EQ(copy(4, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(words[2], 1U);
  EXPECT_EQ(words[3], 2U);
  EXPECT_EQ(cuda_.cuMemcpyBatchAsync_v2(to, from, sizes, 2, &in_order, &first, 1, stream),
            CUDA_SUCCESS);
  EXPECT_EQ(copy(4, nullptr), CUDA_ERROR_INVALID_VALUE) << "not in the default stream";
  EXPECT_EQ(copy(0, stream), CUDA_ERROR_INVALID_VALUE);
  to[1] = 12345;
  EXPECT_EQ(copy(4, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, 1U);
  first = 1;
  EXPECT_EQ(copy(4, stream), CUDA_ERROR_INVALID_VALUE) << "no attributes for the first";
}

TEST_F(CudaMemory, GoesWithItsContext) {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda_.cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, 10 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAllocAsync(&pointer, 10, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0);
}

TEST_F(CudaMemory, OfOtherProcessesCountsAndComesBackWhenTheyDie) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const std::string file = cuda_.file;
  const pid_t child = ::fork();
  if (child == 0) {
    // A fresh instance, as in another program: the path differs, the file is the same.
    const std::string other = file + ".child";
    if (::link(file.c_str(), other.c_str()) != 0) ::_exit(2);
    void* handle = ::dlmopen(LM_ID_NEWLM, other.c_str(), RTLD_NOW);
    if (handle == nullptr) ::_exit(3);
    const Api cuda([handle](const char* name) { return ::dlsym(handle, name); });
    CUcontext context = nullptr;
    CUdeviceptr pointer = 0;
    const bool right = cuda.cuInit(0) == CUDA_SUCCESS &&
                       cuda.cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS &&
                       cuda.cuMemAlloc_v2(&pointer, 1024 * kMiB) == CUDA_SUCCESS;
    if (::write(pipe[1], right ? "y" : "n", 1) != 1) ::_exit(4);
    for (;;) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(pipe[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(used(), mib(1024) + 548995072);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(used(), 0);
}

TEST_F(CudaMemory, ManyThreadsAtOnceLeaveNothingBehind) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuda_.cuCtxGetCurrent(&context), CUDA_SUCCESS);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_EQ(cuda_.cuCtxSetCurrent(context), CUDA_SUCCESS);
      for (int i = 0; i < 200; ++i) {
        CUdeviceptr pointer = 0;
        EXPECT_EQ(cuda_.cuMemAlloc_v2(&pointer, static_cast<std::size_t>(1 + t) << (i % 22)),
                  CUDA_SUCCESS);
        EXPECT_EQ(cuda_.cuMemsetD8_v2(pointer, 1, 1), CUDA_SUCCESS);
        EXPECT_EQ(cuda_.cuMemFree_v2(pointer), CUDA_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(used(), 0);
}

TEST(CudaMigMemory, EndsWhereTheInstanceEnds) {
  const test::Machine machine("a100x8");
  const CudaInTree cuda(machine);
  ready(cuda);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 5ULL << 30U), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 4ULL << 30U), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::sim::cuda
