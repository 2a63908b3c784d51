// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_cluster/cluster_simulation.hpp"

#include <gtest/gtest.h>

namespace gantry::simulate {
namespace {

// Parses each line before the step is repeated.
Status replay(const std::vector<std::string>& log, placement::Cluster& cluster) {
  for (const auto& line : log) {
    GANTRY_TRY(const auto step, placement::parse_log_entry(line));
    GANTRY_CHECK(placement::replay(cluster, step));
  }
  return {};
}

#define EXPECT_DONE(expression)                                 \
  do {                                                          \
    const auto gantry_status = (expression);                    \
    ASSERT_TRUE(gantry_status) << gantry_status.error().text(); \
  } while (false)

// schedule-speed of the release build runs it in full size, also as a test.
TEST(ClusterSimulation, NeverOversubscribesAndNeverLeaks) {
  ClusterSimulation world({.seed = 2026,
                           .nodes = 40,
                           .pods_at_once = 1500,
                           .asked = 20,
                           .crash = 1000,
                           .broken = 800,
                           .log = false});
  for (int i = 0; i < 5000; ++i) {
    EXPECT_DONE(world.step());
    if (i % 1000 == 0) EXPECT_DONE(world.settle());
  }
  EXPECT_DONE(world.settle());
  const auto& counts = world.counts();
  EXPECT_GT(counts.placed, 1000U);
  EXPECT_GT(counts.crashes, 1U);
  EXPECT_GT(counts.lists, 1U);
  EXPECT_GT(counts.unanswered, 1U);
  EXPECT_GT(counts.node_changes, 5U);
  EXPECT_GT(counts.quota_changes, 5U);
  EXPECT_GT(counts.refused, 0U);
  EXPECT_GT(counts.over_quota, 0U);
  EXPECT_LT(counts.over_quota, counts.refused);
  EXPECT_DONE(world.empty());
}

TEST(ClusterSimulation, DiesAtEveryPointOfABindAndLosesNothing) {
  ClusterSimulation world({.seed = 7,
                           .nodes = 12,
                           .pods_at_once = 400,
                           .asked = 12,
                           .crash = 6,
                           .refused = 10,
                           .unanswered = 5,
                           .broken = 30,
                           .twice = 2,
                           .late = 2,
                           .node_change = 10,
                           .quota_change = 10,
                           .log = false});
  for (int i = 0; i < 800; ++i) EXPECT_DONE(world.step());
  EXPECT_GT(world.counts().crashes, 50U);
  EXPECT_DONE(world.settle());
  EXPECT_DONE(world.empty());
}

TEST(ClusterSimulation, ItsLogGivesTheSameStateAgain) {
  ClusterSimulation world({.seed = 11,
                           .nodes = 20,
                           .pods_at_once = 700,
                           .asked = 20,
                           .crash = 300,
                           .refused = 30,
                           .unanswered = 30,
                           .broken = 400,
                           .node_change = 30,
                           .quota_change = 30});
  for (int i = 0; i < 1200; ++i) EXPECT_DONE(world.step());
  EXPECT_GT(world.counts().crashes, 1U);
  placement::Cluster again;
  EXPECT_DONE(replay(world.log(), again));
  EXPECT_EQ(placement::to_string(again), placement::to_string(world.cluster()));
  EXPECT_DONE(again.check());
}

TEST(ClusterSimulation, OneSeedGivesOneHistory) {
  const SimulationOptions options{.seed = 5, .nodes = 10, .pods_at_once = 200, .crash = 100};
  ClusterSimulation one(options);
  ClusterSimulation other(options);
  for (int i = 0; i < 300; ++i) {
    EXPECT_DONE(one.step());
    EXPECT_DONE(other.step());
  }
  EXPECT_EQ(one.log(), other.log());
}

}  // namespace
}  // namespace gantry::simulate
