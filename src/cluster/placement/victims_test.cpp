// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/test_cluster_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

podspec::PodRequest with_priority(podspec::PodRequest ask, std::int32_t priority) {
  ask.priority = priority;
  return ask;
}

void put(Cluster& cluster, const podspec::PodRequest& ask) {
  const auto placement = cluster.reserve(ask, "n");
  ASSERT_TRUE(placement);
  cluster.set_pod(ask, "n", &*placement);
}

std::vector<std::string> victims(const Cluster& cluster, const podspec::PodRequest& ask,
                                 const std::vector<std::string>& chosen = {}) {
  auto found = cluster.victims(ask, "n", chosen);
  return found ? *found : std::vector<std::string>{found.error().text()};
}

TEST(Victims, OneThatIsEnoughRatherThanTwoThatAreSmaller) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40}));
  put(cluster, pod("small-1", 20));
  put(cluster, pod("small-2", 20));
  put(cluster, pod("large", 40));
  EXPECT_THAT(victims(cluster, with_priority(pod("new", 40), 5)), ElementsAre("large"));
}

TEST(Victims, TheLeastImportantOfEquals) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40, 40}));
  put(cluster, with_priority(pod("a", 40), 3));
  put(cluster, with_priority(pod("b", 40), 1));
  put(cluster, with_priority(pod("c", 40), 2));
  EXPECT_THAT(victims(cluster, with_priority(pod("new", 10), 5)), ElementsAre("b"));
}

TEST(Victims, NoPodOfEqualOrGreaterPriority) {
  Cluster cluster;
  cluster.set_node(node("n", {40}));
  put(cluster, with_priority(pod("a", 40), 5));
  EXPECT_EQ(cluster.victims(with_priority(pod("new", 10), 5), "n", {}).error().code(),
            Errc::NotFound);
  EXPECT_THAT(victims(cluster, with_priority(pod("new", 10), 6)), ElementsAre("a"));
}

TEST(Victims, NoneWhereItFitsOrWhereNothingHelps) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40}));
  put(cluster, pod("a", 40));
  EXPECT_THAT(victims(cluster, with_priority(pod("new", 40), 5)), IsEmpty());
  EXPECT_EQ(cluster.victims(with_priority(pod("new", 41), 5), "n", {}).error().code(),
            Errc::NotFound);
  EXPECT_EQ(cluster.victims(with_priority(pod("new", 4), 5), "elsewhere", {}).error().code(),
            Errc::NotFound);
}

TEST(Victims, WhomTheSchedulerChoseStaysChosenAndCounts) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40}));
  put(cluster, pod("a", 40));
  put(cluster, pod("b", 40));
  EXPECT_THAT(victims(cluster, with_priority(pod("new", 40), 5), {"b", "without-gpu"}),
              ElementsAre("b", "without-gpu"));
  EXPECT_THAT(victims(cluster, with_priority(pod("new", 40, 0, 2), 5), {"without-gpu"}),
              UnorderedElementsAre("without-gpu", "a", "b"));
}

TEST(Victims, AreNotTakenWhereTheQuotaIsWhatIsMissing) {
  Cluster cluster;
  cluster.set_node(node("n", {40}));
  put(cluster, pod("a", 40));
  cluster.set_quota("team", {.mib = 50 * kGiB});
  EXPECT_EQ(cluster.victims(with_priority(pod("new", 40), 5), "n", {}).error().code(),
            Errc::NotFound);
}

TEST(Victims, OfACardFullOfSmallPodsAreAsManyAsNeededAndNoMore) {
  Cluster cluster;
  auto facts = node("n", {80, 80, 80, 80, 80, 80, 80, 80});
  cluster.set_node(facts);
  for (int i = 0; i < 8 * 20; ++i)
    put(cluster, with_priority(pod(fmt::format("p{:03}", i), 4), i % 7));
  const auto found = cluster.victims(with_priority(pod("new", 40), 9), "n", {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 10U);
}

}  // namespace
}  // namespace gantry::placement
