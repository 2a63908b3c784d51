// SPDX-License-Identifier: Apache-2.0
// The turn scheduler on a simulated GPU: what greedy tenants get.
#include "sharing/policy/simulated_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::policy {
namespace {

constexpr TestProgram kGreedy{.kernel = 1ms};

constexpr TimePolicy percent(std::uint32_t part) {
  return {.percent = part};
}
constexpr TimePolicy cap(std::uint32_t part) {
  return {.percent = part, .excess = Excess::Refused};
}

struct AllBusy {
  std::vector<std::uint32_t> percents;
  Excess excess;
};

class Turns : public testing::TestWithParam<AllBusy> {};

TEST_P(Turns, AllBusyGetTheirPerCentInAnyFiveSecondsAndLittleIsLost) {
  SimulatedGpu gpu;
  const auto& percents = GetParam().percents;
  for (TenantId id = 0; id < percents.size(); ++id) {
    gpu.add(id, {.percent = percents[id], .excess = GetParam().excess}, kGreedy);
  }
  gpu.run_until(12s);
  double sum = 0;
  for (TenantId id = 0; id < percents.size(); ++id) {
    const auto [least, most] = gpu.extremes(id, 5s);
    EXPECT_GE(least, percents[id] - 2.0) << "tenant " << id;
    EXPECT_LE(most, percents[id] + 2.0) << "tenant " << id;
    sum += gpu.percent(id, 1s, 12s);
  }
  EXPECT_GE(sum, 99.0);
}

INSTANTIATE_TEST_SUITE_P(
    WorkConserving, Turns,
    testing::Values(AllBusy{{30, 70}, Excess::Allowed}, AllBusy{{20, 30, 50}, Excess::Allowed},
                    AllBusy{{10, 30, 60}, Excess::Allowed}, AllBusy{{5, 5, 90}, Excess::Allowed},
                    AllBusy{std::vector<std::uint32_t>(10, 10), Excess::Allowed}));
INSTANTIATE_TEST_SUITE_P(Capped, Turns,
                         testing::Values(AllBusy{{30, 70}, Excess::Refused},
                                         AllBusy{{20, 30, 50}, Excess::Refused},
                                         AllBusy{{10, 30, 60}, Excess::Refused}));

TEST(Turns, WeightsShareWhatPerCentsLeave) {
  SimulatedGpu gpu;
  gpu.add(1, percent(40), kGreedy);
  gpu.add(2, {.weight = 200}, kGreedy);
  gpu.add(3, {.weight = 100}, kGreedy);
  gpu.run_until(8s);
  EXPECT_NEAR(gpu.percent(1, 1s, 8s), 40, 1);
  EXPECT_NEAR(gpu.percent(2, 1s, 8s), 40, 1);
  EXPECT_NEAR(gpu.percent(3, 1s, 8s), 20, 1);
}

TEST(Turns, WhatIsPromisedTwiceShrinksAlike) {
  SimulatedGpu gpu;
  gpu.add(1, percent(80), kGreedy);
  gpu.add(2, percent(80), kGreedy);
  gpu.run_until(6s);
  EXPECT_NEAR(gpu.percent(1, 1s, 6s), 50, 1);
  EXPECT_NEAR(gpu.percent(2, 1s, 6s), 50, 1);
}

struct CapCase {
  std::uint32_t percent;
  Time kernel;
};
class CappedAlone : public testing::TestWithParam<CapCase> {};

TEST_P(CappedAlone, HasItsPerCentInAnyFiveSeconds) {
  SimulatedGpu gpu;
  gpu.add(1, cap(GetParam().percent), {.kernel = GetParam().kernel});
  gpu.run_until(12s);
  const auto [least, most] = gpu.extremes(1, 5s, Time{0});
  EXPECT_GE(least, GetParam().percent - 2.0);
  EXPECT_LE(most, GetParam().percent + 2.0);
  EXPECT_GE(gpu.percent(1, 1s, 12s), 0.97 * GetParam().percent);
}

INSTANTIATE_TEST_SUITE_P(Caps, CappedAlone,
                         testing::Values(CapCase{5, 300us}, CapCase{30, 300us}, CapCase{50, 300us},
                                         CapCase{70, 300us}, CapCase{95, 1ms}, CapCase{30, 7ms},
                                         CapCase{50, 7ms}, CapCase{70, 100us}));

TEST(Turns, AnIdleHourSavesNoBurstUnderACap) {
  SimulatedGpu gpu;
  gpu.add(1, cap(30), {.kernel = 300us, .start = 3600s});
  gpu.run_until(3608s);
  EXPECT_LE(gpu.percent(1, 3600s, 3605s), 32);
}

TEST(Turns, LongKernelsUnderACapAverageRight) {
  SimulatedGpu gpu;
  gpu.add(1, cap(30), {.kernel = 200ms});
  gpu.add(2, percent(70), kGreedy);
  gpu.run_until(40s);
  EXPECT_NEAR(gpu.percent(1, 1s, 40s), 30, 1.5);
  EXPECT_GE(gpu.percent(2, 1s, 40s), 66);  // the loss is the hardware's slicing between both
}

TEST(Turns, LongKernelsAndShortOnesHaveEqualTime) {
  SimulatedGpu gpu;
  gpu.add(1, percent(50), {.kernel = 200ms});
  gpu.add(2, percent(50), kGreedy);
  gpu.run_until(20s);
  EXPECT_NEAR(gpu.percent(1, 1s, 20s), gpu.percent(2, 1s, 20s), 2);
  EXPECT_GE(gpu.percent(1, 1s, 20s), 47);
}

TEST(Turns, WhatOneLeavesTheOthersHaveWithin200Milliseconds) {
  SimulatedGpu gpu;
  gpu.add(1, percent(50), {.kernel = 1ms, .stop = 4s});
  gpu.add(2, percent(30), kGreedy);
  gpu.add(3, percent(20), kGreedy);
  gpu.run_until(8s);
  EXPECT_GE(gpu.percent(2, 4s, 4200ms) + gpu.percent(3, 4s, 4200ms), 97);
  EXPECT_NEAR(gpu.percent(2, 4200ms, 8s), 60, 2);
  EXPECT_NEAR(gpu.percent(3, 4200ms, 8s), 40, 2);
}

TEST(Turns, OneThatComesLateHasItsShareAndNoMore) {
  SimulatedGpu gpu;
  gpu.add(1, percent(50), kGreedy);
  gpu.run_until(10s);
  gpu.add(2, percent(50), {.kernel = 1ms, .start = 10s});
  gpu.run_until(15s);
  EXPECT_NEAR(gpu.percent(2, 10s, 11s), 50, 4);
  EXPECT_NEAR(gpu.percent(2, 10s, 15s), 50, 2);
}

TEST(Turns, OneThatComesBackHasItsShareAtOnceAndNoMore) {
  SimulatedGpu gpu;
  gpu.add(1, percent(50), kGreedy);
  gpu.add(2, percent(50), {.kernel = 1ms, .start = 10s});
  gpu.run_until(15s);
  EXPECT_GE(gpu.percent(2, 10s, 10200ms), 45);
  EXPECT_NEAR(gpu.percent(2, 10s, 15s), 50, 2);
}

TEST(Turns, OneThatLeavesTakesNoOtherAccountAlong) {
  SimulatedGpu gpu;
  gpu.add(1, percent(40), kGreedy);
  gpu.add(2, percent(40), kGreedy);
  gpu.add(3, percent(20), {.kernel = 3s});  // leaves with a large debt
  gpu.run_until(5s);
  gpu.remove(3);
  gpu.add(4, percent(20), kGreedy);
  gpu.run_until(10s);
  EXPECT_NEAR(gpu.percent(4, 5s, 7s), 20, 3);
  EXPECT_NEAR(gpu.percent(1, 5s, 10s), 40, 2);
  EXPECT_NEAR(gpu.percent(2, 5s, 10s), 40, 2);
}

TEST(Turns, AChangedShareCountsAtOnce) {
  SimulatedGpu gpu;
  gpu.add(1, percent(30), kGreedy);
  gpu.add(2, percent(70), kGreedy);
  gpu.run_until(5s);
  gpu.change(1, percent(70));
  gpu.change(2, percent(30));
  gpu.run_until(10s);
  EXPECT_NEAR(gpu.percent(1, 5s, 6s), 70, 6);
  EXPECT_NEAR(gpu.percent(1, 5s, 10s), 70, 2);
}

TEST(Turns, ACapGoesBesideWhoTakesTheRest) {
  SimulatedGpu gpu;
  gpu.add(1, cap(30), kGreedy);
  gpu.add(2, percent(20), kGreedy);
  gpu.run_until(8s);
  EXPECT_NEAR(gpu.percent(1, 1s, 8s), 30, 1);
  EXPECT_NEAR(gpu.percent(2, 1s, 8s), 69.5, 1);
}

TEST(Turns, PriorityHasWhatIsLeftAndSharesHoldAllTheSame) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 30, .priority = Priority::High}, kGreedy);
  gpu.add(2, percent(20), kGreedy);
  gpu.add(3, percent(50), {.kernel = 1ms, .stop = 5s});
  gpu.run_until(12s);
  EXPECT_NEAR(gpu.percent(1, 1s, 5s), 30, 2);
  EXPECT_NEAR(gpu.percent(1, 6s, 12s), 79.5, 2);
  EXPECT_NEAR(gpu.percent(2, 6s, 12s), 20, 2);
}

TEST(Turns, AStepOfPriorityWeighsTenTimes) {
  SimulatedGpu gpu;
  gpu.add(1, {.priority = Priority::High}, kGreedy);
  gpu.add(2, {}, kGreedy);
  gpu.run_until(8s);
  EXPECT_NEAR(gpu.percent(1, 1s, 8s), 90, 2);
  EXPECT_NEAR(gpu.percent(2, 1s, 8s), 9, 2);
}

TEST(Turns, TheControllerSleepsThroughATurn) {
  SimulatedGpu gpu;
  gpu.add(1, percent(50), kGreedy);
  gpu.add(2, percent(50), kGreedy);
  gpu.run_until(10s);
  EXPECT_LT(gpu.ticks(), 10 * 50);
}

}  // namespace
}  // namespace gantry::policy
