// SPDX-License-Identifier: Apache-2.0
// Every kind of allocation: the share is charged exactly what the driver took from the card.
#include "fence/share_under_test.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gantry::fence::test {
namespace {

using sim::cuda::free_bytes;
using sim::cuda::ready;

class Families : public ::testing::Test {
 protected:
  void SetUp() override {
    ready(cuda);
    start_ = free_bytes(driver);
    ASSERT_EQ(share.held(), 0U);
  }
  // The memory that the driver took since the start; checks that the share was charged the same.
  std::uint64_t taken() {
    const std::uint64_t bytes = start_ - free_bytes(driver);
    EXPECT_EQ(share.held(), bytes);
    const auto row = share.usage(0);
    EXPECT_EQ(row.begun, row.ended) << "no call is under way";
    if (bytes != last_) {
      EXPECT_GT(row.begun, calls_) << "what changed it was counted";
    }
    last_ = bytes;
    calls_ = row.begun;
    return bytes;
  }
  // Sets the limit so that this much is left.
  void leave(std::uint64_t bytes) { share.set_limit(share.held() + bytes); }

  static CUmemAllocationProp on_gpu() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return prop;
  }

  ShareUnderTest share;
  CudaLibrary cuda{share.fence()};
  CudaLibrary driver{share.driver()};  // without the fence

 private:
  std::uint64_t start_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t calls_ = 0;
};

TEST_F(Families, PlainMemoryInWholeGranules) {
  for (const std::uint64_t bytes : {kMiB + 1, kGranule, kGranule + 1, 100 * kMiB + 5}) {
    CUdeviceptr pointer = 0;
    ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, bytes), CUDA_SUCCESS);
    EXPECT_EQ(taken(), (bytes + kGranule - 1) / kGranule * kGranule);
    EXPECT_EQ(cuda.cuMemFree_v2(pointer), CUDA_SUCCESS);
    EXPECT_EQ(taken(), 0U);
  }
}

TEST_F(Families, SmallOnesShareAGranule) {
  std::vector<CUdeviceptr> pointers(10'000);
  std::size_t size = 1;
  for (CUdeviceptr& pointer : pointers) {
    ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
    size = size * 7 % 5'003 + 1;
  }
  EXPECT_GT(taken(), 10 * kGranule);
  for (std::size_t i = 0; i < pointers.size(); i += 2)
    EXPECT_EQ(cuda.cuMemFree_v2(pointers[i]), CUDA_SUCCESS);
  taken();
  for (std::size_t i = 1; i < pointers.size(); i += 2)
    EXPECT_EQ(cuda.cuMemFree_v2(pointers[i]), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, TwoOfAMegabyteShareOneToo) {
  CUdeviceptr one = 0;
  CUdeviceptr two = 0;
  CUdeviceptr three = 0;
  ASSERT_EQ(cuda.cuMemAlloc_v2(&one, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&two, kMiB), CUDA_SUCCESS);
  EXPECT_EQ(taken(), kGranule);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&three, kMiB), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 2 * kGranule);
}

TEST_F(Families, PlainMemoryAsCuda2KnewIt) {
  CUdeviceptr_v1 pointer = 0;
  CUdeviceptr_v1 rows = 0;
  unsigned int pitch = 0;
  ASSERT_EQ(cuda.cuMemAlloc(&pointer, 3 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 2 * kGranule);
  ASSERT_EQ(cuda.cuMemAllocPitch(&rows, &pitch, 1000, 3000, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024U);
  EXPECT_EQ(taken(), 4 * kGranule);
  EXPECT_EQ(cuda.cuMemFree(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemFree(rows), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, PitchedAndManagedMemory) {
  CUdeviceptr rows = 0;
  CUdeviceptr managed = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(cuda.cuMemAllocPitch_v2(&rows, &pitch, 10'001, 7'000, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 10'240U);
  EXPECT_EQ(taken(), (pitch * 7'000 + kGranule - 1) / kGranule * kGranule);
  EXPECT_EQ(cuda.cuMemFree_v2(rows), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocManaged(&managed, 5, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(taken(), kGranule);
  EXPECT_EQ(cuda.cuMemFree_v2(managed), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, ArraysOfAllShapes) {
  const CUDA_ARRAY_DESCRIPTOR_v1 old = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY_DESCRIPTOR line = {1U << 19U, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  const CUDA_ARRAY_DESCRIPTOR plane = {3000, 2000, CU_AD_FORMAT_HALF, 2};
  const CUDA_ARRAY3D_DESCRIPTOR volume = {128, 128, 100, CU_AD_FORMAT_FLOAT, 4, 0};
  const CUDA_ARRAY3D_DESCRIPTOR_v1 old_volume = {64, 64, 64, CU_AD_FORMAT_FLOAT, 4, 0};
  std::vector<CUarray> arrays(5);
  ASSERT_EQ(cuda.cuArrayCreate(&arrays[0], &old), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 2 * kGranule);
  ASSERT_EQ(cuda.cuArrayCreate_v2(&arrays[1], &line), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 4 * kGranule) << "rows come in groups of eight";
  ASSERT_EQ(cuda.cuArrayCreate_v2(&arrays[2], &plane), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 16 * kGranule);
  ASSERT_EQ(cuda.cuArray3DCreate_v2(&arrays[3], &volume), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 29 * kGranule);
  ASSERT_EQ(cuda.cuArray3DCreate(&arrays[4], &old_volume), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 31 * kGranule);
  for (CUarray array : arrays) EXPECT_EQ(cuda.cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
  CUmipmappedArray mipmap = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR levels = {2048, 2048, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  ASSERT_EQ(cuda.cuMipmappedArrayCreate(&mipmap, &levels, 4), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 11 * kGranule) << "16 + 4 + 1 + 1/4 MiB in one piece";
  EXPECT_EQ(cuda.cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

// They share a granule with other allocations, so the host's number may differ by one granule.
TEST_F(Families, SmallArraysAreChargedTheirPart) {
  const CUDA_ARRAY_DESCRIPTOR plane = {64, 64, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  for (int i = 0; i < 200; ++i) ASSERT_EQ(cuda.cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), 200U * 64 * 64 * 4);
}

TEST_F(Families, PoolsCountWhatTheyKeep) {
  CUdeviceptr one = 0;
  CUdeviceptr two = 0;
  ASSERT_EQ(cuda.cuMemAllocAsync(&one, 40 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 64 * kMiB);
  ASSERT_EQ(cuda.cuMemAllocAsync(&two, 20 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 64 * kMiB) << "from what the pool has";
  EXPECT_EQ(cuda.cuMemFreeAsync(one, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 64 * kMiB);
  EXPECT_EQ(cuda.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 32 * kMiB) << "given back at a synchronisation";
  EXPECT_EQ(cuda.cuMemFree_v2(two), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, PoolsOfOnesOwn) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr pointer = 0;
  std::uint64_t keep = UINT64_MAX;
  ASSERT_EQ(cuda.cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
            CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocFromPoolAsync(&pointer, 100 * kMiB, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 128 * kMiB);
  EXPECT_EQ(cuda.cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 128 * kMiB) << "below its threshold a pool keeps everything";
  EXPECT_EQ(cuda.cuMemPoolTrimTo(pool, 40 * kMiB), CUDA_SUCCESS);
  EXPECT_LT(taken(), 128 * kMiB);
  EXPECT_EQ(cuda.cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, PerThreadStreamsHavePoolsToo) {
  auto* allocate = cuda.get<decltype(::cuMemAllocAsync)>("cuMemAllocAsync_ptsz");
  auto* release = cuda.get<decltype(::cuMemFreeAsync)>("cuMemFreeAsync_ptsz");
  auto* synchronise = cuda.get<decltype(::cuStreamSynchronize)>("cuStreamSynchronize_ptsz");
  CUdeviceptr pointer = 0;
  ASSERT_EQ(allocate(&pointer, 10, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 32 * kMiB);
  EXPECT_EQ(release(pointer, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(synchronise(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, MemoryAndItsMappingsLiveSeparately) {
  const CUmemAllocationProp prop = on_gpu();
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle again = 0;
  CUdeviceptr address = 0;
  ASSERT_EQ(cuda.cuMemCreate(&handle, 10 * kMiB, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 10 * kMiB);
  ASSERT_EQ(cuda.cuMemAddressReserve(&address, 30 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(
        cuda.cuMemMap(address + static_cast<CUdeviceptr>(i) * 10 * kMiB, 10 * kMiB, 0, handle, 0),
        CUDA_SUCCESS);
  }
  void* mapped = nullptr;
  std::memcpy(&mapped, &address, sizeof mapped);
  ASSERT_EQ(cuda.cuMemRetainAllocationHandle(&again, mapped), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 10 * kMiB) << "mapped and retained";
  EXPECT_EQ(cuda.cuMemUnmap(address, 10 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemUnmap(address + 10 * kMiB, 20 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 10 * kMiB) << "retained";
  EXPECT_EQ(cuda.cuMemRelease(again), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Families, MemoryOfTheHostIsFree) {
  CUmemAllocationProp prop = on_gpu();
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  CUmemGenericAllocationHandle handle = 0;
  void* host = nullptr;
  leave(0);
  EXPECT_EQ(cuda.cuMemCreate(&handle, 64 * kMiB, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuMemHostAlloc(&host, 64 * kMiB, 0), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
  EXPECT_EQ(cuda.cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(Families, GraphsThatAllocate) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode free_node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = 40 * kMiB;
  ASSERT_EQ(cuda.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphAddMemFreeNode(&free_node, graph, &node, 1, params.dptr), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
  ASSERT_EQ(cuda.cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 64 * kMiB) << "kept for the next launch";
  ASSERT_EQ(cuda.cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 64 * kMiB);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
  leave(62 * kMiB);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  leave(64 * kMiB);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(Families, ACapturedAllocationIsTheGraphs) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr pointer = 0;
  ASSERT_EQ(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  leave(0);
  ASSERT_EQ(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocAsync(&pointer, 3 * kMiB, stream), CUDA_SUCCESS)
      << "nothing is allocated yet";
  ASSERT_EQ(cuda.cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
  leave(32 * kMiB);
  EXPECT_EQ(cuda.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 32 * kMiB);
}

TEST_F(Families, WithTheContextGoesWhatWasAllocatedInIt) {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  const CUDA_ARRAY_DESCRIPTOR plane = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  ASSERT_EQ(cuda.cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 100 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAlloc_v2(&pointer, 100), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuMemAllocAsync(&pointer, 100, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuArrayCreate_v2(&array, &plane), CUDA_SUCCESS);
  EXPECT_EQ(share.held(), 100 * kMiB + 3 * kGranule + 32 * kMiB);
  EXPECT_EQ(cuda.cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0U);
}

}  // namespace
}  // namespace gantry::fence::test
