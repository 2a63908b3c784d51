// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/cluster.hpp"

#include "cluster/placement/test_cluster_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Reserve, TakesTheCardWithTheSmallestPieceThatFits) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80, 80}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", 60), "n")), ElementsAre(0));
  EXPECT_THAT(indexes(cluster.reserve(pod("b", 40), "n")), ElementsAre(1));
  EXPECT_THAT(indexes(cluster.reserve(pod("c", 10), "n")), ElementsAre(0));
  EXPECT_THAT(indexes(cluster.reserve(pod("d", 30), "n")), ElementsAre(1));
  EXPECT_TRUE(cluster.check());
}

TEST(Reserve, RefusesWithTheNumbersOfTheAsk) {
  Cluster cluster;
  cluster.set_node(node("n", {16}));
  ASSERT_TRUE(cluster.reserve(pod("a", 10), "n"));
  const auto refused = cluster.reserve(pod("b", 10), "n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_EQ(refused.error().text(), "no GPU here has 10 GiB of memory free");
}

TEST(Reserve, IsHeldUntilReleased) {
  Cluster cluster;
  cluster.set_node(node("n", {16}));
  ASSERT_TRUE(cluster.reserve(pod("a", 10), "n"));
  EXPECT_EQ(cluster.fit(pod("b", 10), "n").refusal, Refusal::Memory);
  cluster.release("a");
  EXPECT_EQ(cluster.fit(pod("b", 10), "n").refusal, Refusal::None);
}

TEST(SetPod, ReplacesTheReservationAndReleaseDoesNotTouchIt) {
  Cluster cluster;
  cluster.set_node(node("n", {16}));
  const auto placement = cluster.reserve(pod("a", 10), "n");
  ASSERT_TRUE(placement);
  cluster.set_pod(pod("a", 10), "n", &*placement);
  cluster.release("a");
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 10 * kGiB);
  cluster.remove_pod("a");
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 0);
  EXPECT_TRUE(cluster.check());
}

TEST(Fit, CountsAPodWithoutPlacementAgainstEveryCard) {
  Cluster cluster;
  cluster.set_node(node("n", {16, 16}));
  cluster.set_pod(pod("a", 10), "n", nullptr);
  EXPECT_EQ(cluster.fit(pod("b", 7), "n").refusal, Refusal::Memory);
  EXPECT_EQ(cluster.fit(pod("b", 6), "n").refusal, Refusal::None);
  ASSERT_EQ(cluster.view("n").unplaced.size(), 1);
  const auto placed = cluster.reserve(pod("a", 10), "n");
  ASSERT_TRUE(placed);
  EXPECT_EQ(cluster.fit(pod("b", 16), "n").refusal, Refusal::None);
  cluster.release("a");  // it is on the node all the same
  EXPECT_EQ(cluster.fit(pod("b", 7), "n").refusal, Refusal::Memory);
  EXPECT_TRUE(cluster.check());
}

TEST(Exclusive, TakesAnEmptyCardThatNoOtherPodJoins) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80}));
  ASSERT_TRUE(cluster.reserve(pod("small", 1), "n"));
  EXPECT_THAT(indexes(cluster.reserve(pod("alone", 10, 100), "n")), ElementsAre(1));
  EXPECT_THAT(indexes(cluster.reserve(pod("more", 1), "n")), ElementsAre(0));
  EXPECT_EQ(cluster.fit(pod("other", 10, 100), "n").refusal, Refusal::Exclusive);
  EXPECT_EQ(cluster.fit(pod("large", 79), "n").refusal, Refusal::Memory);
}

TEST(Exclusive, CoresThatAreAllPromisedTakeNoMoreEvenWithoutALimit) {
  Cluster cluster;
  cluster.set_node(node("n", {80}));
  ASSERT_TRUE(cluster.reserve(pod("a", 1, 60), "n"));
  EXPECT_EQ(cluster.fit(pod("b", 1, 50), "n").refusal, Refusal::Cores);
  EXPECT_EQ(cluster.fit(pod("b", 1), "n").refusal, Refusal::None);
  ASSERT_TRUE(cluster.reserve(pod("c", 1, 40), "n"));
  EXPECT_EQ(cluster.fit(pod("b", 1), "n").refusal, Refusal::Cores);
}

TEST(WholeGpus, GoToNodesWithWholeGpusOrToEmptySharedCards) {
  Cluster cluster;
  cluster.set_node({.name = "w", .whole_gpus = 8});
  cluster.set_node(node("s", {80, 80}));
  EXPECT_EQ(cluster.fit(whole("a"), "w").refusal, Refusal::None);
  EXPECT_EQ(cluster.fit(pod("a", 1), "w").refusal, Refusal::NoSharedGpus);
  const auto on_whole = cluster.reserve(whole("a"), "w");
  ASSERT_TRUE(on_whole);
  EXPECT_THAT(*on_whole, IsEmpty());
  EXPECT_THAT(indexes(cluster.reserve(whole("b", 2), "s")), ElementsAre(0, 1));
  EXPECT_EQ(cluster.fit(whole("c"), "s").refusal, Refusal::Exclusive);
  EXPECT_TRUE(cluster.check());
}

}  // namespace
}  // namespace gantry::placement
