// SPDX-License-Identifier: Apache-2.0
// The limit is exact, every kind of allocation reports it as out of memory, and CUDA shows it as
// the size of the GPU.
#include "fence/share_under_test.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace gantry::fence::test {
namespace {

using sim::cuda::free_bytes;
using sim::cuda::ready;
using sim::cuda::ScopedEnvironment;

constexpr std::uint64_t kSmallLimit = 1000 * kMiB;
constexpr CUdeviceptr kUntouched = 0x5a5a5a5a;

class Limits : public ::testing::Test {
 protected:
  void SetUp() override { ready(cuda); }
  std::uint64_t left() { return free_bytes(cuda); }

  ShareUnderTest share{{.memory_limit = kSmallLimit}};
  CudaLibrary cuda{share.fence()};
  CudaLibrary driver{share.driver()};
};

TEST_F(Limits, TheLastGranuleFitsAndNotOneByteMore) {
  CUdeviceptr most = 0;
  CUdeviceptr last = 0;
  CUdeviceptr more = kUntouched;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, kSmallLimit + 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&most, kSmallLimit - kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&more, kGranule + 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&last, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(left(), 0U);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{kMiB}, ~std::size_t{0}})
    EXPECT_EQ(cuda.cuMemAlloc_v2(&more, bytes), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(more, kUntouched);
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.reports(FENCE_REFUSED) == 5; }))
      << "the host is told";
  EXPECT_EQ(cuda.cuMemFree_v2(last), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&last, kGranule), CUDA_SUCCESS);
}

TEST_F(Limits, HoldsInEveryFamily) {
  CUdeviceptr most = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&most, kSmallLimit - kGranule), CUDA_SUCCESS);
  CUdeviceptr pointer = kUntouched;
  CUdeviceptr_v1 old = 7;
  std::size_t pitch = 7;
  unsigned int old_pitch = 7;
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUmemGenericAllocationHandle handle = 7;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUDA_ARRAY_DESCRIPTOR plane = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR volume = {1024, 1024, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuda.cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  const std::vector<std::function<CUresult()>> too_much = {
      [&] { return cuda.cuMemAlloc_v2(&pointer, kGranule + 1); },
      [&] { return cuda.cuMemAlloc(&old, kGranule + 1); },
      [&] { return cuda.cuMemAllocPitch_v2(&pointer, &pitch, 513, 4096, 4); },
      [&] { return cuda.cuMemAllocPitch(&old, &old_pitch, 513, 4096, 4); },
      [&] { return cuda.cuMemAllocManaged(&pointer, kGranule + 1, CU_MEM_ATTACH_GLOBAL); },
      [&] { return cuda.cuMemAllocAsync(&pointer, kGranule + 1, nullptr); },
      [&] { return cuda.cuMemAllocFromPoolAsync(&pointer, kGranule + 1, pool, nullptr); },
      [&] { return cuda.cuMemCreate(&handle, 2 * kGranule, &prop, 0); },
      [&] { return cuda.cuArrayCreate_v2(&array, &plane); },
      [&] { return cuda.cuArray3DCreate_v2(&array, &volume); },
      [&] { return cuda.cuMipmappedArrayCreate(&mipmap, &volume, 3); },
      [&] { return cuda.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 3 * kGranule); },
  };
  for (std::size_t i = 0; i < too_much.size(); ++i)
    EXPECT_EQ(too_much[i](), CUDA_ERROR_OUT_OF_MEMORY) << i;
  EXPECT_EQ(pointer, kUntouched);
  EXPECT_EQ(old + pitch + old_pitch + handle, 28U);
  EXPECT_EQ(array, nullptr);
  EXPECT_EQ(mipmap, nullptr);
  EXPECT_EQ(share.held(), kSmallLimit - kGranule) << "nothing is left behind";
  EXPECT_EQ(cuda.cuMemAllocManaged(&pointer, kGranule, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(left(), 0U);
}

TEST_F(Limits, TheGpuIsAsLargeAsTheShare) {
  std::size_t total = 0;
  std::size_t free = 0;
  unsigned int small_free = 0;
  unsigned int small_total = 0;
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuda.cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, kSmallLimit);
  EXPECT_EQ(cuda.cuDeviceTotalMem(&small_total, 0), CUDA_SUCCESS);
  EXPECT_EQ(small_total, kSmallLimit);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 10 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, kSmallLimit);
  EXPECT_EQ(free, kSmallLimit - 10 * kMiB);
  EXPECT_EQ(cuda.cuMemGetInfo(&small_free, &small_total), CUDA_SUCCESS);
  EXPECT_EQ(small_total, kSmallLimit);
  EXPECT_EQ(small_free, kSmallLimit - 10 * kMiB);
  EXPECT_EQ(cuda.cuMemGetInfo_v2(&free, nullptr), driver.cuMemGetInfo_v2(&free, nullptr))
      << "no pointer, no answer: as the driver has it";
  share.set_overhead(100 * kMiB);
  EXPECT_EQ(left(), kSmallLimit - 10 * kMiB) << "contexts are free in this share";
  share.set_flags(0);
  EXPECT_EQ(left(), kSmallLimit - 110 * kMiB);
  share.set_limit(50 * kMiB);
  EXPECT_EQ(left(), 0U) << "set while it runs";
}

TEST_F(Limits, WhatIsWrongIsStillWrong) {
  CUdeviceptr pointer = kUntouched;
  CUcontext context = nullptr;
  EXPECT_EQ(cuda.cuMemAlloc_v2(nullptr, 2 * kSmallLimit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemCreate(nullptr, kGranule, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemRelease(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuArrayDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuMemFreeAsync(0x1234, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuCtxDestroy_v2(nullptr), driver.cuCtxDestroy_v2(nullptr));
  EXPECT_EQ(cuda.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 2 * kSmallLimit), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 10), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(pointer, kUntouched);
  EXPECT_EQ(share.held(), 0U);
}

TEST_F(Limits, FreeingTwiceGivesBackOnce) {
  CUdeviceptr pointer = 0;
  CUdeviceptr other = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 100 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&other, 100 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda.cuMemFree_v2(other + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(share.held(), 100 * kMiB);
}

TEST_F(Limits, SmallOnesFitIntoWhatIsPaidFor) {
  CUdeviceptr most = 0;
  CUdeviceptr first = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&first, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&most, kSmallLimit - kGranule), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  std::uint64_t fitted = 1;
  while (cuda.cuMemAlloc_v2(&pointer, 512) == CUDA_SUCCESS) ++fitted;
  EXPECT_EQ(fitted, kGranule / 512);
  EXPECT_EQ(share.held(), kSmallLimit);
  EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 300), CUDA_SUCCESS);
}

TEST_F(Limits, WhatAPoolKeepsMakesRoomForOthers) {
  CUmemoryPool pool = nullptr;
  CUdeviceptr pointer = 0;
  std::uint64_t keep = UINT64_MAX;
  ASSERT_EQ(cuda.cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
            CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocAsync(&pointer, 900 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, 200 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuda.cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_GE(share.held(), 900 * kMiB);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&pointer, kSmallLimit), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), kSmallLimit);
}

TEST(ContextLimits, AContextCountsFromTheStart) {
  constexpr std::uint64_t kContext = 500 * kMiB;
  ShareUnderTest share({.memory_limit = 1200 * kMiB, .context_estimate = kContext, .flags = 0});
  const CudaLibrary cuda(share.fence());
  CUcontext one = nullptr;
  CUcontext two = nullptr;
  CUcontext three = nullptr;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&one, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&one, 0), CUDA_SUCCESS) << "the same again";
  EXPECT_EQ(share.usage(0).contexts, 1U);
  ASSERT_EQ(cuda.cuCtxCreate_v4(&two, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(cuda), 200 * kMiB);
  EXPECT_EQ(cuda.cuCtxCreate_v2(&three, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(three, nullptr);
  EXPECT_TRUE(ShareUnderTest::until([&] { return share.reports(FENCE_CONTEXT) >= 2; }));
  EXPECT_EQ(cuda.cuCtxDestroy_v2(two), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(share.usage(0).contexts, 1U);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(share.usage(0).contexts, 0U);
}

TEST(ContextLimits, ResettingThePrimaryContextFreesWhatItHad) {
  ShareUnderTest share;
  const CudaLibrary cuda(share.fence());
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 30 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 30), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), 32 * kMiB);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), 0U);
}

// The sixth and the third of eight GPUs, and a program that sees them the other way round.
TEST(SeveralGpus, EachHasItsOwnLimitWhateverTheOrder) {
  ShareUnderTest share({.machine = "h200x8", .memory_limit = kSmallLimit, .gpus = {5, 2}});
  share.set_limit(2 * kSmallLimit, 1);
  const ScopedEnvironment order("CUDA_VISIBLE_DEVICES", "2,0,5");
  const CudaLibrary cuda(share.fence());
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  std::size_t total = 0;
  EXPECT_EQ(cuda.cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 2 * kSmallLimit);
  EXPECT_EQ(cuda.cuDeviceTotalMem_v2(&total, 2), CUDA_SUCCESS);
  EXPECT_EQ(total, kSmallLimit);
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  EXPECT_EQ(cuda.cuCtxCreate_v2(&context, 0, 1), CUDA_ERROR_DEVICE_UNAVAILABLE)
      << "not of this share";
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  EXPECT_EQ(cuda.cuMemCreate(&handle, kGranule, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuda.cuCtxCreate_v2(&context, 0, 2), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 10 * kMiB), CUDA_SUCCESS);
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_EQ(cuda.cuMemCreate(&handle, 20 * kMiB, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(share.held(0), 10 * kMiB);
  EXPECT_EQ(share.held(1), 20 * kMiB);
  // The device of the stream decides where the memory comes from.
  CUcontext other = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cuda.cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocAsync(&pointer, 5, stream), CUDA_SUCCESS);
  EXPECT_EQ(share.held(0), 10 * kMiB);
  EXPECT_EQ(share.held(1), 52 * kMiB);
}

}  // namespace
}  // namespace gantry::fence::test
