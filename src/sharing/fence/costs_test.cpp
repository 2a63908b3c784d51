// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/costs.hpp"

#include <gtest/gtest.h>

namespace gantry::fence {
namespace {

TEST(Costs, OfAnUnknownOneTheMaximumCounts) {
  Cost cost;
  learn(cost, kUnknownCostNs, {.expected_ns = kUnknownCostNs, .least_ns = 0, .most_ns = 9000});
  EXPECT_NEAR(static_cast<double>(cost.ns), 9000, 10);
}

TEST(Costs, TheFirstPreciseSampleCounts) {
  Cost cost{.ns = 100'000, .precise = false};
  learn(cost, 100'000, {.expected_ns = 100'000, .least_ns = 4800, .most_ns = 5000});
  EXPECT_NEAR(static_cast<double>(cost.ns), 5000, 10);
}

TEST(Costs, LaterOnesAreWeighed) {
  Cost cost{.ns = 1000, .precise = true};
  learn(cost, 1000, {.expected_ns = 16000, .least_ns = 32000, .most_ns = 33000});
  EXPECT_NEAR(static_cast<double>(cost.ns), 1250, 2);
  learn(cost, 1000, {.expected_ns = 1000, .least_ns = 0, .most_ns = 250});
  EXPECT_NEAR(static_cast<double>(cost.ns), 1000, 2);
}

TEST(Costs, ALateLookThatLeavesRoomChangesNothing) {
  Cost cost{.ns = 1000, .precise = true};
  learn(cost, 1000, {.expected_ns = 1000, .least_ns = 0, .most_ns = 50'000});
  EXPECT_EQ(cost.ns, 1000U);
}

TEST(Costs, ADisturbedSampleHardlyMakesThemLonger) {
  Cost cost{.ns = 300'000, .precise = true};
  const Sample with_a_request{
      .expected_ns = 300'000, .least_ns = 1'400'000, .most_ns = 1'410'000, .disturbed = true};
  learn(cost, cost.ns, with_a_request);
  EXPECT_LT(cost.ns, 340'000U);
  for (int i = 0; i < 4; ++i) learn(cost, cost.ns, {cost.ns, 299'000, 301'000});
  EXPECT_LT(cost.ns, 312'000U);
}

TEST(Costs, WorkThatIsAlwaysDisturbedIsLearnedAllTheSame) {
  Cost cost{.ns = 300'000, .precise = true};
  for (int i = 0; i < 200; ++i) learn(cost, cost.ns, {cost.ns, 9'900'000, 10'000'000, true});
  EXPECT_GT(cost.ns, 9'000'000U);
  Cost unknown;
  learn(unknown, kUnknownCostNs, {kUnknownCostNs, 9'900'000, 10'000'000, true});
  EXPECT_GT(unknown.ns, 9'000'000U);
  EXPECT_FALSE(unknown.precise);
}

TEST(Costs, ADisturbedSampleThatWasShorterCountsAsAny) {
  Cost cost{.ns = 1000, .precise = true};
  learn(cost, 1000, {.expected_ns = 1000, .least_ns = 0, .most_ns = 200, .disturbed = true});
  EXPECT_NEAR(static_cast<double>(cost.ns), 800, 2);
}

TEST(Costs, OneSampleMovesThemNoFurtherThanABound) {
  Cost cost{.ns = 1000, .precise = true};
  learn(cost, 1000, {.expected_ns = 1, .least_ns = UINT64_MAX, .most_ns = UINT64_MAX});
  EXPECT_LE(cost.ns, 17'000U);
  learn(cost, cost.ns, {.expected_ns = UINT64_MAX - 1, .least_ns = 0, .most_ns = 0});
  EXPECT_GE(cost.ns, 1U);
}

TEST(Costs, ShortKernelsAreMarkedSeldomLongOnesEach) {
  EXPECT_EQ(launches_between_marks(2000), kMaxLaunchesBetweenMarks);
  EXPECT_EQ(launches_between_marks(0), kMaxLaunchesBetweenMarks);
  EXPECT_EQ(launches_between_marks(100 * kMicrosecond), 4U);
  EXPECT_EQ(launches_between_marks(10 * kMillisecond), 1U);
}

}  // namespace
}  // namespace gantry::fence
