// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/shared_pages.hpp"

#include "base/core/bytes.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace gantry::daemon {
namespace {

SharedPages two_gpus() {
  const std::vector<GpuPageValues> gpus{
      {.uuid = {1}, .memory_limit = 10 * kGiB, .memory_total = 140 * kGiB},
      {.uuid = {2}, .memory_limit = 20 * kGiB, .memory_total = 140 * kGiB}};
  return *SharedPages::make("two", gpus);
}

// The tenant's mapping of the usage page.
struct Tenant {
  explicit Tenant(const SharedPages& pages)
      : mapping(::mmap(nullptr, pages.usage_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
                       pages.usage_fd(), 0),
                pages.usage_size()) {}
  FenceUsage& header() const { return *static_cast<FenceUsage*>(mapping.get()); }
  FenceUsageRow& row(std::uint32_t slot, std::uint32_t gpu) const {
    return reinterpret_cast<FenceUsageRow*>(&header() + 1)[gpu * FENCE_MAX_PROCESSES + slot];
  }
  Mapping mapping;
};

TEST(SharedPages, TellTenantsTheLimitsOfTheirGpus) {
  const auto pages = two_gpus();
  const Mapping seen(
      ::mmap(nullptr, pages.limits_size(), PROT_READ, MAP_SHARED, pages.limits_fd(), 0),
      pages.limits_size());
  ASSERT_NE(seen.get(), MAP_FAILED);
  const auto& limits = *static_cast<const FenceLimits*>(seen.get());
  EXPECT_EQ(limits.magic, static_cast<std::uint32_t>(FENCE_MAGIC));
  EXPECT_EQ(limits.gpu_count, 2U);
  EXPECT_STREQ(limits.share, "two");
  EXPECT_EQ(limits.gpu[1].memory_limit, 20 * kGiB);
  EXPECT_EQ(limits.gpu[1].uuid[0], 2);
}

TEST(SharedPages, CannotBeResizedAndLimitsCannotBeWritten) {
  const auto pages = two_gpus();
  EXPECT_NE(::ftruncate(pages.limits_fd(), 0), 0);
  EXPECT_NE(::ftruncate(pages.usage_fd(), 0), 0);
  EXPECT_NE(::ftruncate(pages.usage_fd(), 1 << 24), 0);
  EXPECT_NE(::fcntl(pages.usage_fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pages.limits_fd(), 0),
            MAP_FAILED);
  EXPECT_LT(::pwrite(pages.limits_fd(), "x", 1, 0), 0);
  void* readable = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, pages.limits_fd(), 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_NE(::mprotect(readable, 4096, PROT_READ | PROT_WRITE), 0);
  ::munmap(readable, 4096);
}

TEST(SharedPages, WhatTheDeadHeldIsFreeAgain) {
  auto pages = two_gpus();
  const Tenant tenant(pages);
  pages.take_slot(3, 4711, 7);
  EXPECT_EQ(pages.slots_in_use(), 4U);
  tenant.row(3, 1).held = kGiB;
  tenant.row(3, 1).pending = kGiB;
  tenant.row(3, 1).busy = 1;
  tenant.header().lock = 1 + 3;
  EXPECT_EQ(pages.usage(3, 1).held, kGiB);
  pages.free_slot(3);
  EXPECT_EQ(tenant.row(3, 1).held, 0U);
  EXPECT_EQ(tenant.row(3, 1).pending, 0U);
  EXPECT_EQ(tenant.row(3, 1).busy, 0U);
  EXPECT_EQ(tenant.header().lock, 0U);
  EXPECT_EQ(pages.slots_in_use(), 0U);
}

TEST(SharedPages, WhoWaitsForTheLockOfADeadProcessIsWoken) {
  auto pages = two_gpus();
  const Tenant tenant(pages);
  pages.take_slot(0, 4711, 7);
  tenant.header().lock = 1;
  std::thread waiting([&] {
    auto& lock = tenant.header().lock;
    while (std::atomic_ref<std::uint32_t>(lock).load() != 0)
      ::syscall(SYS_futex, &lock, FUTEX_WAIT, 1, nullptr, nullptr, 0);
  });
  pages.free_slot(0);
  waiting.join();
}

TEST(SharedPages, TheLockOfALivingProcessStays) {
  auto pages = two_gpus();
  const Tenant tenant(pages);
  pages.take_slot(5, 4711, 7);
  tenant.header().lock = 1 + 5;
  pages.free_orphaned_lock();
  EXPECT_EQ(tenant.header().lock, 6U);
  tenant.header().lock = 0xFFFFFFFF;
  pages.free_orphaned_lock();
  EXPECT_EQ(tenant.header().lock, 0U);
}

TEST(SharedPages, AnOpenedGateWakesWhoWaitsAtIt) {
  auto pages = two_gpus();
  pages.set_gate(1, FENCE_SHUT);
  const Mapping seen(
      ::mmap(nullptr, pages.limits_size(), PROT_READ, MAP_SHARED, pages.limits_fd(), 0),
      pages.limits_size());
  auto& gate = static_cast<FenceLimits*>(seen.get())->gpu[1].gate;
  std::thread waiting([&] {
    while ((std::atomic_ref<std::uint32_t>(gate).load() & FENCE_GATE_MASK) == FENCE_SHUT)
      ::syscall(SYS_futex, &gate, FUTEX_WAIT, FENCE_SHUT, nullptr, nullptr, 0);
  });
  pages.set_gate(1, (1U << FENCE_TURN_SHIFT) | FENCE_OPEN);
  waiting.join();
  EXPECT_EQ(pages.gate(0), static_cast<std::uint32_t>(FENCE_OPEN));
}

TEST(SharedPages, ValuesStayWithinBoundsWhateverATenantWrites) {
  auto pages = two_gpus();
  const Tenant tenant(pages);
  pages.take_slot(0, 4711, 7);
  std::mt19937_64 random(5);
  auto* words = static_cast<std::uint64_t*>(tenant.mapping.get());
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < pages.usage_size() / 8; ++i) words[i] = random();
    pages.free_orphaned_lock();
    for (const std::uint32_t slot : {0U, 1U, static_cast<unsigned>(FENCE_MAX_PROCESSES) - 1}) {
      const auto usage = pages.usage(slot, 1);
      EXPECT_LE(usage.held, 140 * kGiB);
      EXPECT_LE(usage.pending, 140 * kGiB);
      EXPECT_LE(usage.cost_ns, kMaxLaunchNs);
      EXPECT_LE(usage.drained_ns, monotonic_ns());
      EXPECT_LE(usage.waiting, kMaxThreads);
      EXPECT_LE(usage.contexts, kMaxContexts);
    }
  }
  pages.take_slot(1, 4712, 8);
  EXPECT_EQ(pages.usage(1, 1).held, 0U) << "a new process begins with an empty row";
}

}  // namespace
}  // namespace gantry::daemon
