// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/gpu_schedule_internal.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace gantry::sim {
namespace {

constexpr std::uint64_t kMs = 1000000;
constexpr std::uint64_t kStart = 1000 * kMs;

// A GPU with some processes, controlled only by the test.
class Gpu {
 public:
  explicit Gpu(std::uint32_t processes) {
    advance(*region_, 0, kStart);
    for (std::uint32_t i = 0; i < processes; ++i) claim_slot(*region_, i, 0, 100, 1);
  }
  ProcessSlot& operator[](std::uint32_t slot) { return region_->slot[slot]; }
  TimeRegion& region() { return *region_; }
  void enqueue(std::uint32_t slot, std::uint64_t length) {
    ProcessSlot& who = region_->slot[slot];
    who.until = (who.until > who.own ? who.until : who.own) + length;
  }
  void go(std::uint64_t length) { advance(*region_, 0, region_->timeline[0].wall + length); }

 private:
  std::unique_ptr<TimeRegion> region_ = std::make_unique<TimeRegion>();
};

TEST(GpuSchedule, AProcessAloneHasTheGpuToItself) {
  Gpu gpu(1);
  gpu.enqueue(0, 30 * kMs);
  gpu.go(10 * kMs);
  EXPECT_EQ(gpu[0].own, kStart + 10 * kMs);
  EXPECT_EQ(gpu[0].busy, 10 * kMs);
  EXPECT_EQ(time_until(gpu.region(), 0, kStart + 30 * kMs), 20 * kMs);
  gpu.go(90 * kMs);
  EXPECT_EQ(gpu[0].busy, 30 * kMs) << "idle time is not busy time";
  EXPECT_EQ(gpu[0].own, kStart + 100 * kMs) << "but it passes";
}

TEST(GpuSchedule, TwoBusyProcessesGetHalfEachAndTheSwitchesCost) {
  Gpu gpu(2);
  gpu.enqueue(0, 10000 * kMs);
  gpu.enqueue(1, 10000 * kMs);
  gpu.go(1060 * kMs);
  EXPECT_NEAR(static_cast<double>(gpu[0].busy), 500.0 * kMs, 3.0 * kMs);
  EXPECT_NEAR(static_cast<double>(gpu[1].busy), 500.0 * kMs, 3.0 * kMs);
}

TEST(GpuSchedule, TheSharesDoNotDependOnHowOftenTheyAreRead) {
  Gpu once(3);
  Gpu often(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    once.enqueue(i, (300 + i * 50) * kMs);
    often.enqueue(i, (300 + i * 50) * kMs);
  }
  once.go(777 * kMs);
  for (int i = 0; i < 7770; ++i) often.go(kMs / 10);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(once[i].busy, often[i].busy);
    EXPECT_EQ(once[i].own, often[i].own);
  }
}

TEST(GpuSchedule, WhoGoesLeavesItsTimeToTheOthersAtOnce) {
  Gpu gpu(2);
  gpu.enqueue(0, 1000 * kMs);
  gpu.enqueue(1, 1000 * kMs);
  gpu.go(50 * kMs);
  gpu[1].used = 0;
  const std::uint64_t before = gpu[0].busy;
  gpu.go(100 * kMs);
  EXPECT_EQ(gpu[0].busy - before, 100 * kMs);
}

TEST(GpuSchedule, AShortRequestWaitsForTheRestOfASliceOnly) {
  Gpu gpu(2);
  gpu.enqueue(0, 1000 * kMs);
  gpu.go(33 * kMs);
  gpu.enqueue(1, kMs);
  const std::uint64_t end = gpu[1].until;
  const std::uint64_t asked = gpu.region().timeline[0].wall;
  while (gpu[1].own < end) gpu.go(time_until(gpu.region(), 1, end));
  EXPECT_LE(gpu.region().timeline[0].wall - asked, kSliceNs + kSwitchNs + kMs);
  EXPECT_EQ(wall_time(gpu.region(), 1, end), gpu.region().timeline[0].wall)
      << "the wait that was foretold was neither too short nor too long";
}

TEST(GpuSchedule, OwnTimeIsTranslatedBackToTheWalls) {
  Gpu gpu(2);
  gpu.enqueue(0, 10 * kMs);
  gpu.enqueue(1, 10 * kMs);
  const std::uint64_t first = gpu[0].until;
  const std::uint64_t second = gpu[1].until;
  gpu.go(100 * kMs);
  const std::uint64_t end_of_first = wall_time(gpu.region(), 0, first);
  const std::uint64_t end_of_second = wall_time(gpu.region(), 1, second);
  EXPECT_GT(end_of_first, kStart + 15 * kMs);
  EXPECT_GT(end_of_second, kStart + 15 * kMs);
  EXPECT_NE(end_of_first, end_of_second);
  EXPECT_LT(end_of_first, kStart + 23 * kMs);
  EXPECT_LT(end_of_second, kStart + 23 * kMs);
}

TEST(GpuSchedule, BusyTimeIsKnownOverAWindow) {
  Gpu gpu(1);
  gpu.go(1000 * kMs);
  gpu.enqueue(0, 250 * kMs);
  gpu.go(100 * kMs);
  gpu.go(400 * kMs);
  std::uint64_t from = gpu.region().timeline[0].wall - 500 * kMs;
  EXPECT_EQ(busy_since(gpu.region(), 0, from), 250 * kMs);
  EXPECT_LE(from, kStart + 1000 * kMs);
}

TEST(GpuSchedule, ARegionFullOfNonsenseEnds) {
  auto region = std::make_unique<TimeRegion>();
  region->slot_count = 0xffffffffU;
  region->timeline[3].current = 0xffffffffU;
  region->timeline[3].slice_end = ~0ULL;
  region->slot[0].used = region->slot[7].used = 1;
  region->slot[0].timeline = region->slot[7].timeline = 3;
  region->slot[0].until = region->slot[7].until = ~0ULL;
  region->slot[7].mark_count = region->slot[7].sample_count = ~0ULL - 1;
  advance(*region, 3, 5 * kMs);
  advance(*region, 3, 500 * kMs);
  advance(*region, 4000000, 500 * kMs);
  std::uint64_t from = 0;
  busy_since(*region, 7, from);
  wall_time(*region, 7, 1);
  EXPECT_EQ(region->timeline[3].wall, 500 * kMs);
}

}  // namespace
}  // namespace gantry::sim
