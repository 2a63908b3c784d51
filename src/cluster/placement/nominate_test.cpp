// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/test_cluster_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

podspec::PodRequest important(podspec::PodRequest ask, std::int32_t priority) {
  ask.priority = priority;
  return ask;
}

// Two cards of 40 GiB, each with a pod of 30.
class NominateTest : public testing::Test {
 protected:
  NominateTest() {
    cluster.set_node(node("n", {40, 40}));
    put(pod("a", 30));
    put(pod("b", 30));
  }
  void put(const podspec::PodRequest& ask) {
    const auto placement = cluster.reserve(ask, "n");
    ASSERT_TRUE(placement);
    cluster.set_pod(ask, "n", &*placement);
  }
  bool fits(const podspec::PodRequest& ask) const {
    return cluster.fit(ask, "n").refusal == Refusal::None;
  }
  Result<podspec::Placement> add_nomination(const podspec::PodRequest& ask,
                                            const std::vector<std::string>& going) {
    auto nominated = cluster.add_nomination(ask, "n", going);
    EXPECT_TRUE(cluster.check());
    return nominated;
  }

  Cluster cluster;
  podspec::PodRequest first = important(pod("first", 20), 5);
};

TEST_F(NominateTest, RoomThatIsGoingToBeFreeIsForOneAloneOnceItIs) {
  ASSERT_TRUE(add_nomination(first, {"a"}));
  EXPECT_TRUE(cluster.is_nominated("first"));
  EXPECT_FALSE(fits(first)) << "a is still there";
  cluster.remove_pod("a");
  EXPECT_TRUE(fits(first));
  EXPECT_FALSE(fits(pod("late", 25)));
  EXPECT_TRUE(fits(pod("beside", 20))) << "40 less 20 that are kept";
  EXPECT_FALSE(fits(important(pod("equal", 25), 5)));
  ASSERT_TRUE(cluster.reserve(first, "n"));
  EXPECT_FALSE(cluster.is_nominated("first"));
  EXPECT_TRUE(cluster.check());
}

TEST_F(NominateTest, RoomIsFreeAgainWhenItIsReleasedOrItsPodIsGone) {
  ASSERT_TRUE(add_nomination(first, {"a"}));
  cluster.remove_pod("a");
  cluster.release("first");
  EXPECT_TRUE(fits(pod("late", 40)));
  ASSERT_TRUE(add_nomination(first, {}));
  cluster.remove_pod("first");
  EXPECT_TRUE(fits(pod("late", 40)));
  EXPECT_TRUE(cluster.check());
}

TEST_F(NominateTest, NothingIsKeptWhereItWouldNotFitEvenThen) {
  EXPECT_FALSE(add_nomination(first, {}));
  EXPECT_FALSE(add_nomination(important(pod("large", 50), 5), {"a", "b"}));
  EXPECT_FALSE(add_nomination(important(pod("two", 20, 0, 2), 5), {"a"}));
}

TEST_F(NominateTest, WhoMattersMoreTakesWhatWasKeptAndTheOtherAsksAgain) {
  ASSERT_TRUE(add_nomination(first, {"a"}));
  cluster.remove_pod("a");
  const auto more = important(pod("more", 30), 9);
  EXPECT_TRUE(fits(more));
  ASSERT_TRUE(cluster.reserve(more, "n"));
  EXPECT_TRUE(cluster.check());
  EXPECT_FALSE(cluster.is_nominated("first"));
}

TEST_F(NominateTest, WhoMattersMoreLeavesAloneWhatItDoesNotNeed) {
  ASSERT_TRUE(add_nomination(first, {"a"}));
  cluster.remove_pod("a");
  ASSERT_TRUE(cluster.reserve(important(pod("more", 20), 9), "n"));
  EXPECT_TRUE(cluster.is_nominated("first"));
  EXPECT_TRUE(fits(first));
}

TEST_F(NominateTest, VictimsOfTwoThatWaitAreNotTheSame) {
  const auto found = cluster.victims(first, "n", {});
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre("a"));
  ASSERT_TRUE(add_nomination(first, *found));
  const auto second = important(pod("second", 25), 5);
  const auto others = cluster.victims(second, "n", *found);
  ASSERT_TRUE(others);
  EXPECT_THAT(*others, ElementsAre("a", "b"));
  EXPECT_THAT(*cluster.victims(first, "n", *found), ElementsAre("a")) << "nobody more";
}

TEST_F(NominateTest, TheSparedAreNoVictims) {
  const auto others =
      cluster.victims(first, "n", {}, [](std::string_view uid) { return uid == "a"; });
  ASSERT_TRUE(others);
  EXPECT_THAT(*others, ElementsAre("b"));
  EXPECT_FALSE(cluster.victims(first, "n", {}, [](std::string_view) { return true; }));
}

TEST_F(NominateTest, WhatIsKeptIsShownAndIsNotInUse) {
  ASSERT_TRUE(add_nomination(first, {"a"}));
  const auto view = cluster.view("n");
  EXPECT_EQ(view.cards[0].used_mib + view.cards[1].used_mib, 60 * kGiB);
  ASSERT_EQ(view.nominated.size(), 1U);
  EXPECT_EQ(view.nominated[0].pod.uid, "first");
  EXPECT_EQ(view.nominated[0].mib, 20 * kGiB);
  cluster.release("first");
  EXPECT_THAT(cluster.view("n").nominated, IsEmpty());
}

TEST_F(NominateTest, ANodeThatChangesKeepsWhatIsKept) {
  ASSERT_TRUE(add_nomination(first, {"a"}));
  cluster.set_node(node("n", {40, 40, 10}));
  cluster.remove_pod("a");
  EXPECT_TRUE(fits(first));
  EXPECT_FALSE(fits(pod("late", 25)));
  EXPECT_TRUE(cluster.check());
}

}  // namespace
}  // namespace gantry::placement
