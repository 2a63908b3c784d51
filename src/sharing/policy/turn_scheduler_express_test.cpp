// SPDX-License-Identifier: Apache-2.0
// The turn scheduler on a simulated GPU: tenants that need little time, but at once.
#include "sharing/policy/simulated_gpu_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::policy {
namespace {

constexpr TestProgram kRequests{.kernel = 100us, .period = 4ms, .request = 1ms, .jitter = 100us};

Time p99(const std::vector<Time>& sorted) {
  return sorted.at(sorted.size() * 99 / 100);
}

Time p99_alone() {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, kRequests);
  gpu.run_until(2s);
  return p99(gpu.latencies(1));
}

TEST(Express, RequestsBesideATrainerWaitForOneKernelAtMost) {
  for (const auto kernel : {Time(30us), Time(150us), Time(300us)}) {
    SimulatedGpu gpu;
    gpu.add(1, {.percent = 50}, kRequests);
    gpu.add(2, {.percent = 50}, {.kernel = kernel});
    gpu.run_until(3s);
    EXPECT_LE(p99(gpu.latencies(1)), 1.4 * p99_alone()) << kernel.count();
    const double left = 100 - gpu.percent(1, 1s, 3s);
    EXPECT_GE(gpu.percent(2, 1s, 3s), 0.88 * left) << kernel.count();
  }
}

// A fence that learns of a change late shuts late, and a fence that must be woken learns late.
TEST(Express, TheDaemonStaysAwakeForRequestsThatComeSoonAndOnlyForThem) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, kRequests);
  gpu.add(2, {.percent = 50}, {.kernel = 300us, .start = 0us, .stop = 2s});
  gpu.run_until(1s);
  Time asleep{0};
  Time last = gpu.now();
  gpu.look = [&] {
    if (gpu.controller().alert_until() < gpu.now()) asleep += gpu.now() - last;
    last = gpu.now();
  };
  gpu.run_until(2s);
  EXPECT_LT(asleep, 20ms);
  gpu.look = [] {};
  gpu.run_until(3s);
  EXPECT_LT(gpu.controller().alert_until(), gpu.now()) << "nobody else has work";
}

TEST(Express, NoTenantStaysAwakeForRareRequests) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, {.kernel = 100us, .period = 50ms, .request = 1ms});
  gpu.add(2, {.percent = 50}, {.kernel = 300us});
  gpu.run_until(1s);
  Time awake{0};
  Time last = gpu.now();
  gpu.look = [&] {
    if (gpu.controller().alert_until() > gpu.now()) awake += gpu.now() - last;
    last = gpu.now();
  };
  gpu.run_until(2s);
  EXPECT_LT(awake, 150ms) << "while one is served";
}

TEST(Express, ASyncEveryStepMakesNoTrainerExpress) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, kRequests);
  // 10 ms of work, then it waits for the result before the next: it never seems greedy.
  gpu.add(2, {.percent = 50}, {.kernel = 300us, .period = 13700us, .request = 9900us});
  gpu.run_until(5s);
  EXPECT_LE(p99(gpu.latencies(1)), 1.5 * p99_alone());
}

TEST(Express, UnderACapTheNeighbourComesAtOnceToo) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 30, .excess = Excess::Refused}, kRequests);
  gpu.add(2, {.percent = 70}, {.kernel = 300us});
  gpu.run_until(5s);
  EXPECT_LE(p99(gpu.latencies(1)), 1.4 * p99_alone());
}

TEST(Express, WhoWantsMoreThanItsShareIsGreedy) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 20}, {.kernel = 100us, .period = 4ms, .request = 3ms});
  gpu.add(2, {.percent = 80}, {.kernel = 300us});
  gpu.run_until(10s);
  EXPECT_NEAR(gpu.percent(1, 2s, 10s), 20, 2);
  EXPECT_NEAR(gpu.percent(2, 2s, 10s), 80, 2);
}

// Each request comes as soon as the last one is answered; together they exceed the share.
constexpr TestProgram kClient{
    .kernel = 100us, .period = 500us, .request = 1ms, .closed_loop = true};

TEST(Express, WhoIsInAHurryHasItsShareInSmallPieces) {
  for (const auto excess : {Excess::Allowed, Excess::Refused}) {
    SimulatedGpu gpu;
    gpu.add(1, {.percent = 30, .excess = excess}, kClient);
    gpu.add(2, {.percent = 70}, {.kernel = 300us});
    gpu.run_until(5s);
    EXPECT_LE(p99(gpu.latencies(1)), 5ms);  // and not the 50 ms of a turn
    EXPECT_GE(gpu.percent(1, 1s, 5s), 25);
    EXPECT_LE(gpu.percent(1, 1s, 5s), 32);
  }
}

TEST(Express, WhoIsInAHurryUnderACapIsNotKeptWaitingForAWholeTurnsSavings) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 30, .excess = Excess::Refused}, kClient);
  gpu.run_until(5s);
  EXPECT_LE(p99(gpu.latencies(1)), 4ms);
  EXPECT_NEAR(gpu.percent(1, 1s, 5s), 30, 2);
}

TEST(Express, TwoThatSynchroniseAtEveryStepHaveHalfEach) {
  SimulatedGpu gpu;
  const TestProgram trainer{
      .kernel = 300us, .period = 500us, .request = 9900us, .closed_loop = true};
  gpu.add(1, {.percent = 50}, trainer);
  gpu.add(2, {.percent = 50}, trainer);
  gpu.run_until(6s);
  EXPECT_NEAR(gpu.percent(1, 1s, 6s), 49, 2);
  EXPECT_NEAR(gpu.percent(2, 1s, 6s), 49, 2);
}

TEST(Express, ABurstLongerThanTheSavingsTakesTurns) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, {.kernel = 300us, .period = 2s, .request = 600ms, .start = 1s});
  gpu.add(2, {.percent = 50}, {.kernel = 300us});
  gpu.run_until(10s);
  EXPECT_LE(p99(gpu.latencies(1, 2s)), 1300ms);
  EXPECT_GE(gpu.percent(2, 5s, 5500ms), 40);
}

TEST(Express, OneRequestNeverSeenBeforeWaitsForTheQueueOnly) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, {.kernel = 1ms, .period = 5s, .request = 1ms, .start = 3s});
  gpu.add(2, {.percent = 50}, {.kernel = 300us});
  gpu.run_until(4s);
  ASSERT_EQ(gpu.latencies(1).size(), 1);
  EXPECT_LE(gpu.latencies(1).front(), 4ms);
}

TEST(Express, TrainersHaveTheirWholeQueueWhenTheyAreAlone) {
  SimulatedGpu gpu;
  gpu.add(1, {.percent = 50}, kRequests);
  gpu.add(2, {.percent = 50}, {.kernel = 300us});
  gpu.run_until(1s);
  gpu.remove(1);
  gpu.run_for(100ms);
  EXPECT_EQ(gpu.controller().gate(2).gate, Gate::Open);
  EXPECT_GE(gpu.percent(2, 1010ms, 1100ms), 99.9);
}

TEST(Express, OfTwoTheHigherPriorityGoesFirst) {
  TurnScheduler controller;
  controller.add(1, {.percent = 50, .priority = Priority::High}, 0ms);
  controller.add(2, {.percent = 50}, 0ms);
  controller.tick(1s);
  controller.active(2, 1s);
  EXPECT_EQ(controller.gate(2).gate, Gate::Open);
  controller.active(1, 1001ms);
  EXPECT_EQ(controller.gate(1).gate, Gate::Open);
  EXPECT_EQ(controller.gate(2).gate, Gate::Shut);
  controller.idle(1, 1002ms);
  EXPECT_EQ(controller.gate(2).gate, Gate::Open);
}

}  // namespace
}  // namespace gantry::policy
