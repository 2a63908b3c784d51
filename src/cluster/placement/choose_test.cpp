// SPDX-License-Identifier: Apache-2.0
// Which cards: several of them, near each other, for several containers.
#include "cluster/placement/test_cluster_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::placement {
namespace {

using model::ContainerPhase;
using podspec::PlacementPolicy;
using podspec::TopologyPolicy;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

podspec::ContainerRequest with(podspec::ContainerRequest container, ContainerPhase phase) {
  container.phase = phase;
  return container;
}

// Pairs are linked: 0-4, 1-5, 2-6, 3-7.
podspec::NodeInfo paired() {
  auto facts = node("n", {80, 80, 80, 80, 80, 80, 80, 80});
  for (std::size_t i = 0; i < 8; ++i) {
    facts.cards[i].links.assign(8, 1);
    facts.cards[i].links[(i + 4) % 8] = 50;
  }
  return facts;
}

TEST(Choose, ExactFitBeforeASmallRestBeforeAnEmptyCard) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80, 40, 80}));
  ASSERT_TRUE(cluster.reserve(pod("a", 70), "n"));  // 0: 10 left
  ASSERT_TRUE(cluster.reserve(pod("b", 65), "n"));  // 1: 15 left
  EXPECT_THAT(indexes(cluster.reserve(pod("c", 40), "n")), ElementsAre(2));
  EXPECT_THAT(indexes(cluster.reserve(pod("d", 10), "n")), ElementsAre(0));
  EXPECT_THAT(indexes(cluster.reserve(pod("e", 10), "n")), ElementsAre(1));
  EXPECT_THAT(indexes(cluster.reserve(pod("f", 10), "n")), ElementsAre(3));
}

TEST(Choose, TheSmallerOfTwoEmptyCards) {
  Cluster cluster;
  cluster.set_node(node("n", {140, 24, 80}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", 10), "n")), ElementsAre(1));
  EXPECT_THAT(indexes(cluster.reserve(pod("b", 30), "n")), ElementsAre(2));
}

TEST(Choose, SpreadTakesTheCardWithTheMostLeft) {
  Cluster cluster({.gpus = PlacementPolicy::Spread});
  cluster.set_node(node("n", {80, 80}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", 30), "n")), ElementsAre(0));
  EXPECT_THAT(indexes(cluster.reserve(pod("b", 10), "n")), ElementsAre(1));
  EXPECT_THAT(indexes(cluster.reserve(pod("c", 10), "n")), ElementsAre(1));
  auto packs = pod("d", 10);
  packs.affinity.gpus = PlacementPolicy::Pack;
  EXPECT_THAT(indexes(cluster.reserve(packs, "n")), ElementsAre(0));
}

TEST(Choose, SeveralGpusAreDifferentCards) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", 30, 0, 2), "n")), UnorderedElementsAre(0, 1));
  EXPECT_EQ(cluster.fit(pod("b", 10, 0, 3), "n").refusal, Refusal::TooBig);
  ASSERT_TRUE(cluster.reserve(pod("c", 45), "n"));
  EXPECT_EQ(cluster.fit(pod("d", 10, 0, 2), "n").refusal, Refusal::Memory);
}

TEST(Choose, NumaWishKeepsAllCardsOnOneNode) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80, 80, 80}));  // 0 and 1, 2 and 3
  ASSERT_TRUE(cluster.reserve(pod("a", 70), "n"));
  auto topology = pod("b", 20, 0, 2);
  EXPECT_THAT(indexes(cluster.reserve(topology, "n")), testing::SizeIs(2));
  cluster.release("b");
  topology.affinity.topology = TopologyPolicy::Numa;
  EXPECT_THAT(indexes(cluster.reserve(topology, "n")), ElementsAre(2, 3));
  auto more = pod("c", 20, 0, 3);
  more.affinity.topology = TopologyPolicy::Numa;
  EXPECT_FALSE(resolvable(cluster.fit(more, "n").refusal));
  auto large = pod("d", 70, 0, 2);
  large.affinity.topology = TopologyPolicy::Numa;
  EXPECT_EQ(cluster.fit(large, "n").refusal, Refusal::Memory);
}

TEST(Choose, LinkedCardsForPodsThatWishItAndForWholeCards) {
  Cluster cluster;
  cluster.set_node(paired());
  auto linked = pod("a", 10, 0, 2);
  linked.affinity.topology = TopologyPolicy::Links;
  EXPECT_THAT(indexes(cluster.reserve(linked, "n")), ElementsAre(0, 4));
  EXPECT_THAT(indexes(cluster.reserve(whole("b", 2), "n")), ElementsAre(1, 5));
  EXPECT_TRUE(cluster.check());
}

TEST(Choose, ModelsAndUuidsAsWished) {
  Cluster cluster;
  auto facts = node("n", {80, 80, 80});
  facts.cards[1].model = "NVIDIA A100-SXM4-80GB";
  cluster.set_node(facts);
  auto typed = pod("a", 10);
  typed.affinity.types = {"a100"};
  EXPECT_THAT(indexes(cluster.reserve(typed, "n")), ElementsAre(1));
  auto not_typed = pod("b", 10);
  not_typed.affinity.excluded_types = {"A100"};
  not_typed.affinity.excluded_uuids = {{"GPU-n-0"}};
  EXPECT_THAT(indexes(cluster.reserve(not_typed, "n")), ElementsAre(2));
  auto named = pod("c", 10);
  named.affinity.uuids = {{"GPU-n-0"}};
  EXPECT_THAT(indexes(cluster.reserve(named, "n")), ElementsAre(0));
  named.affinity.uuids = {{"GPU-elsewhere"}};
  EXPECT_EQ(cluster.fit(named, "n").refusal, Refusal::NoMatch);
}

TEST(ContainerMask, OfOnePodShareACardWhereItHasRoomForAll) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", {container(30), container(20)}), "n")),
              ElementsAre(0, 0));
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 50 * kGiB);
  EXPECT_EQ(cluster.view("n").cards[0].used_slots, 2U);
}

TEST(ContainerMask, GoToDifferentCardsWhereNoneHasRoomForAll) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", {container(10), container(35)}), "n")),
              ElementsAre(1, 0));
  EXPECT_EQ(cluster.fit(pod("b", {container(30), container(30)}), "n").refusal, Refusal::Memory);
  EXPECT_EQ(cluster.fit(pod("b", {container(30), container(30), container(30)}), "n").refusal,
            Refusal::TooBig);
  EXPECT_TRUE(cluster.check());
}

TEST(ContainerMask, ThatWantACardAloneGetOneEach) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40, 40}));
  EXPECT_THAT(indexes(cluster.reserve(pod("a", {container(10, 100), container(10, 100)}), "n")),
              UnorderedElementsAre(0, 1));
  EXPECT_THAT(indexes(cluster.reserve(pod("b", {container(10, 50), container(10, 50)}), "n")),
              ElementsAre(2, 2));
}

TEST(ContainerMask, InitContainersHandTheirCardOn) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 40}));
  const auto ask = pod("a", {with(container(30), ContainerPhase::Init),
                             with(container(20, 100), ContainerPhase::Init), container(20)});
  EXPECT_THAT(indexes(cluster.reserve(ask, "n")), ElementsAre(0, 0, 0));
  const auto card = cluster.view("n").cards[0];
  EXPECT_EQ(card.used_mib, 30 * kGiB);
  EXPECT_EQ(card.used_slots, 1U);
  EXPECT_EQ(card.used_cores, 100U);
}

TEST(ContainerMask, SidecarsStayBesideInitContainersThatComeLater) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 80}));
  const auto ask = pod("a", {with(container(20), ContainerPhase::Sidecar),
                             with(container(30), ContainerPhase::Init), container(10)});
  EXPECT_THAT(indexes(cluster.reserve(ask, "n")), ElementsAre(1, 1, 1));
  EXPECT_EQ(cluster.view("n").cards[1].used_mib, 50 * kGiB);
}

TEST(ContainerMask, WithDifferentNumbersOfGpusUseTheFirstOfTheSame) {
  Cluster cluster;
  cluster.set_node(node("n", {40, 80}));
  const auto placement = cluster.reserve(pod("a", {container(30), container(30, 0, 2)}), "n");
  EXPECT_THAT(indexes(placement), ElementsAre(1, 1, 0));
  EXPECT_EQ(cluster.view("n").cards[1].used_mib, 60 * kGiB);
}

TEST(ContainerMask, ChargesAreWhatEverybodyElseComputesFromThePlacement) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 40, 40}));
  const auto ask = pod("a", {with(container(20, 10), ContainerPhase::Sidecar),
                             with(container(35, 30), ContainerPhase::Init), container(30, 50, 2)});
  const auto placement = cluster.reserve(ask, "n");
  ASSERT_TRUE(placement);
  const auto before = cluster.view("n");
  cluster.set_pod(ask, "n", &*placement);
  const auto after = cluster.view("n");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(before.cards[i].used_mib, after.cards[i].used_mib) << i;
    EXPECT_EQ(before.cards[i].used_cores, after.cards[i].used_cores) << i;
    EXPECT_EQ(before.cards[i].used_slots, after.cards[i].used_slots) << i;
  }
}

TEST(Percent, IsOfTheCardThatItComesTo) {
  Cluster cluster;
  cluster.set_node(node("n", {140, 24}));
  auto half = pod("a", 0);
  half.containers[0].memory = {.kind = podspec::Amount::Kind::Percent, .value = 50};
  const auto placement = cluster.reserve(half, "n");
  EXPECT_THAT(indexes(placement), ElementsAre(1));
  EXPECT_EQ(placement->front().parts.front().mib, 12 * kGiB);
}

TEST(Score, PacksOntoTheSmallestRestAndBreaksEmptyNodesLast) {
  Cluster cluster;
  cluster.set_node(node("empty", {80, 80}));
  cluster.set_node(node("begun", {80, 80}));
  cluster.set_node(node("full", {80, 80}));
  ASSERT_TRUE(cluster.reserve(pod("a", 75), "begun"));
  ASSERT_TRUE(cluster.reserve(pod("b", 70), "full"));
  EXPECT_EQ(cluster.fit(pod("c", 10), "full").score, 10);
  EXPECT_GT(cluster.fit(pod("c", 9), "full").score, cluster.fit(pod("c", 5), "full").score);
  EXPECT_GT(cluster.fit(pod("c", 10), "begun").score, cluster.fit(pod("c", 10), "empty").score);
  auto spread = pod("c", 10);
  spread.affinity.nodes = PlacementPolicy::Spread;
  EXPECT_GT(cluster.fit(spread, "empty").score, cluster.fit(spread, "full").score);
}

TEST(Score, WholeCardsGoWhereTheyLeaveFewestEmptyOnes) {
  Cluster cluster;
  cluster.set_node(node("empty", {80, 80, 80, 80}));
  cluster.set_node(node("begun", {80, 80, 80, 80}));
  ASSERT_TRUE(cluster.reserve(pod("a", 1), "begun"));
  EXPECT_GT(cluster.fit(whole("b"), "begun").score, cluster.fit(whole("b"), "empty").score);
}

}  // namespace
}  // namespace gantry::placement
