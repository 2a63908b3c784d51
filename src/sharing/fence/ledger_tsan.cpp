// SPDX-License-Identifier: Apache-2.0
// Tests memory accounting with many threads. Built with the thread sanitizer in every preset; the
// driver's memory is simulated in a few lines here.
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/driver_for_test.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/ledger.hpp"
#include "sharing/fence/pools.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace gantry::fence::test {
namespace {

constexpr int kThreads = 6;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMemoryLimit = 256 * kMiB;
constexpr std::uint64_t kStep = 32 * kMiB;

// Addresses are reused at once, as in the real driver.
struct Card {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> taken;  // address, bytes
  std::uint64_t pooled = 0;
  std::uint64_t reserved = 0;
};
Card& card() {
  static Card one;
  return one;
}

std::uint64_t place(std::uint64_t bytes, std::uint64_t unit) {
  std::uint64_t at = kGranule;
  for (const auto& [address, size] : card().taken) {
    if (at + bytes <= address) break;
    at = round_up(address + size, unit);
  }
  card().taken[at] = bytes;
  return at;
}

CUresult allocate(CUdeviceptr* pointer, std::size_t bytes) {
  const std::lock_guard guard(card().mutex);
  *pointer = place(bytes, bytes <= kMiB ? 512 : kGranule);
  return CUDA_SUCCESS;
}
CUresult release(CUdeviceptr pointer) {
  const std::lock_guard guard(card().mutex);
  return card().taken.erase(pointer) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp*,
                unsigned long long) {
  return allocate(handle, bytes);
}
CUresult map(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,
             unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult unmap(CUdeviceptr, std::size_t) {
  return CUDA_SUCCESS;
}
CUresult get_pool(CUmemoryPool* pool, CUdevice) {
  *pool = reinterpret_cast<CUmemoryPool>(&card());
  return CUDA_SUCCESS;
}
CUresult pool_attribute(CUmemoryPool, CUmemPool_attribute which, void* value) {
  const std::lock_guard guard(card().mutex);
  *static_cast<std::uint64_t*>(value) =
      which == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? card().pooled : card().reserved;
  return CUDA_SUCCESS;
}
CUresult allocate_pooled(CUdeviceptr* pointer, std::size_t bytes, CUstream) {
  const std::lock_guard guard(card().mutex);
  card().pooled += bytes;
  card().reserved = std::max(card().reserved, round_up(card().pooled, kStep));
  *pointer = (std::uint64_t{1} << 40U) + bytes;
  return CUDA_SUCCESS;
}
CUresult release_pooled(CUdeviceptr pointer, CUstream) {
  const std::lock_guard guard(card().mutex);
  card().pooled -= pointer - (std::uint64_t{1} << 40U);
  return CUDA_SUCCESS;
}
CUresult trim(CUmemoryPool, std::size_t) {
  const std::lock_guard guard(card().mutex);
  card().reserved = round_up(card().pooled, kStep);
  return CUDA_SUCCESS;
}

void start() {
  start_small_driver();
  page().flags = FENCE_CONTEXT_FREE;
  page().slots_in_use = 1;
  page().gpu[0].memory_limit = kMemoryLimit;
  page().heartbeat_ns = UINT64_MAX;
  RealDriver& real = detail::real_state.entry;
  real.cuMemAlloc_v2 = allocate;
  real.cuMemFree_v2 = release;
  real.cuMemCreate = create;
  real.cuMemRelease = release;
  real.cuMemMap = map;
  real.cuMemUnmap = unmap;
  real.cuDeviceGetMemPool = get_pool;
  real.cuMemPoolGetAttribute = pool_attribute;
  real.cuMemPoolTrimTo = trim;
  real.cuMemAllocAsync = allocate_pooled;
  real.cuMemFreeAsync = release_pooled;
  find_gpus();
}

void plain(std::mt19937& random) {
  CUdeviceptr pointer = 0;
  const std::uint64_t bytes =
      random() % 2 == 0 ? 1 + random() % 100'000 : (1 + random() % 48) * kMiB;
  if (::cuMemAlloc_v2(&pointer, bytes) != CUDA_SUCCESS) return;
  EXPECT_EQ(::cuMemFree_v2(pointer), CUDA_SUCCESS);
}

void pooled(std::mt19937& random) {
  CUdeviceptr pointer = 0;
  if (::cuMemAllocAsync(&pointer, 1 + random() % (40 * kMiB), nullptr) != CUDA_SUCCESS) return;
  EXPECT_EQ(::cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
  pools_synced();
}

void mapped(std::mt19937& random, std::uint64_t address) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop{};
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const std::uint64_t bytes = (1 + random() % 8) * kGranule;
  if (::cuMemCreate(&handle, bytes, &prop, 0) != CUDA_SUCCESS) return;
  EXPECT_EQ(::cuMemMap(address, bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(::cuMemUnmap(address, bytes), CUDA_SUCCESS);
  EXPECT_EQ(::cuMemRelease(handle), CUDA_SUCCESS);
}

TEST(LedgerThreads, AllocateAndFreeInSeveralFamilies) {
  start();
  std::vector<std::thread> threads;
  for (unsigned int i = 0; i < kThreads; ++i) {
    threads.emplace_back([i] {
      std::mt19937 random(i);
      for (int round = 0; round < 400; ++round) {
        switch (random() % 3) {
          case 0: plain(random); break;
          case 1: pooled(random); break;
          default: mapped(random, std::uint64_t{i + 1} << 30U); break;
        }
        EXPECT_LE(__atomic_load_n(&own_row(0).held, __ATOMIC_SEQ_CST), kMemoryLimit);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(reclaim_pools(0) || card().reserved == 0);
  EXPECT_EQ(own_row(0).held, 0U);
  EXPECT_EQ(own_row(0).pending, 0U);
  EXPECT_TRUE(card().taken.empty());
}

}  // namespace
}  // namespace gantry::fence::test
