// SPDX-License-Identifier: Apache-2.0
#include "fence/costs.hpp"

#include <gtest/gtest.h>

namespace gantry::fence {
namespace {

TEST(Costs, TheFirstSampleIsBelieved) {
  Cost cost;
  learn(cost, kUnknownCostNs, {.expected_ns = kUnknownCostNs, .took_ns = 5000, .busy = true});
  EXPECT_EQ(cost.ns, 5000U);
}

TEST(Costs, LaterOnesAreWeighed) {
  Cost cost{.ns = 1000, .samples = 1};
  learn(cost, 1000, {.expected_ns = 16000, .took_ns = 32000, .busy = true});
  EXPECT_EQ(cost.ns, 1250U);
}

TEST(Costs, AGpuThatWasIdleBetweenSaysOnlyAtMost) {
  Cost cost{.ns = 1000, .samples = 1};
  learn(cost, 1000, {.expected_ns = 1000, .took_ns = 50000, .busy = false});
  EXPECT_EQ(cost.ns, 1000U);
  learn(cost, 1000, {.expected_ns = 1000, .took_ns = 500, .busy = false});
  EXPECT_LT(cost.ns, 1000U);
}

TEST(Costs, OneSampleMovesThemNoFurtherThanABound) {
  Cost cost{.ns = 1000, .samples = 1};
  learn(cost, 1000, {.expected_ns = 1, .took_ns = UINT64_MAX, .busy = true});
  EXPECT_LE(cost.ns, 17000U);
  learn(cost, cost.ns, {.expected_ns = UINT64_MAX, .took_ns = 0, .busy = true});
  EXPECT_GE(cost.ns, 1U);
}

TEST(Costs, ShortKernelsAreMarkedSeldomLongOnesEach) {
  EXPECT_EQ(launches_between_marks(2000), kMostBetweenMarks);
  EXPECT_EQ(launches_between_marks(0), kMostBetweenMarks);
  EXPECT_EQ(launches_between_marks(40 * kMicrosecond), 4U);
  EXPECT_EQ(launches_between_marks(10 * kMillisecond), 1U);
}

}  // namespace
}  // namespace gantry::fence
