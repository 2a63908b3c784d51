// SPDX-License-Identifier: Apache-2.0
// Nodes that change below their pods, quotas, and numbers nobody should write.
#include "cluster/placement/name_table_internal.hpp"
#include "cluster/placement/test_cluster_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

namespace gantry::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nodes, ThatShrinkBelowWhatIsPromisedHaveNothingLeft) {
  Cluster cluster;
  cluster.set_node(node("n", {80}));
  const auto placement = cluster.reserve(pod("a", 60, 80), "n");
  ASSERT_TRUE(placement);
  cluster.set_node(node("n", {40}));
  EXPECT_EQ(cluster.fit(pod("b", 1), "n").refusal, Refusal::Memory);
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 60 * kGiB);
  EXPECT_TRUE(cluster.check());
  cluster.set_node(node("n", {80}));
  EXPECT_EQ(cluster.fit(pod("b", 20), "n").refusal, Refusal::None);
  EXPECT_EQ(cluster.fit(pod("b", 21), "n").refusal, Refusal::Memory);
}

TEST(Nodes, ThatLoseACardAndGetItBackKnowWhoIsOnIt) {
  Cluster cluster;
  const auto both = node("n", {80, 80});
  auto one = both;
  one.cards.erase(one.cards.begin());
  cluster.set_node(both);
  ASSERT_TRUE(cluster.reserve(pod("a", 70), "n"));
  cluster.set_node(one);
  EXPECT_THAT(cluster.view("n").cards, testing::SizeIs(1));
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 0U);
  EXPECT_TRUE(cluster.check());
  cluster.set_node(both);
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 70 * kGiB);
  cluster.release("a");
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 0U);
  EXPECT_TRUE(cluster.check());
}

TEST(Nodes, MayBeHeardOfAfterTheirPods) {
  Cluster source;
  source.set_node(node("n", {80, 80}));
  const auto placement = source.reserve(pod("a", 70), "n");
  Cluster cluster;
  cluster.set_pod(pod("a", 70), "n", &*placement);
  cluster.set_pod(pod("b", 5), "n", nullptr);
  EXPECT_EQ(cluster.fit(pod("c", 1), "n").refusal, Refusal::NoSharedGpus);
  EXPECT_THAT(cluster.nodes(), IsEmpty());
  cluster.set_node(node("n", {80, 80}));
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 75 * kGiB);
  EXPECT_EQ(cluster.view("n").cards[1].used_mib, 5 * kGiB);
  cluster.remove_node("n");
  EXPECT_EQ(cluster.fit(pod("c", 1), "n").refusal, Refusal::NoSharedGpus);
  cluster.set_node(node("n", {80, 80}));
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 75 * kGiB);
  cluster.remove_node("n");
  cluster.remove_pod("a");
  cluster.remove_pod("b");
  EXPECT_THAT(cluster.view("n").cards, IsEmpty());
  EXPECT_TRUE(cluster.check());
}

TEST(Nodes, UnhealthyCardsTakeNoPodAndKeepThoseTheyHave) {
  Cluster cluster;
  auto facts = node("n", {80, 80});
  cluster.set_node(facts);
  ASSERT_TRUE(cluster.reserve(pod("a", 10), "n"));
  facts.cards[0].healthy = facts.cards[1].healthy = false;
  cluster.set_node(facts);
  EXPECT_EQ(cluster.fit(pod("b", 10), "n").refusal, Refusal::Unhealthy);
  EXPECT_EQ(cluster.fit(pod("b", 81), "n").refusal, Refusal::TooBig);
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 10 * kGiB);
}

TEST(Nodes, MarkedCardsTakeNoPodAndTheNodeSaysThatItHasSome) {
  Cluster cluster;
  auto facts = node("n", {80, 80});
  facts.cards[1].marked_unhealthy = true;
  cluster.set_node(facts);
  EXPECT_EQ(indexes(cluster.reserve(pod("a", 80), "n")), std::vector<std::uint32_t>{0});
  const auto fit = cluster.fit(pod("b", 10), "n");
  EXPECT_EQ(fit.refusal, Refusal::Memory);
  EXPECT_TRUE(fit.marked_unhealthy);
  EXPECT_EQ(cluster.fit(pod("b", 10, 0, 2), "n").refusal, Refusal::Unhealthy);
  EXPECT_TRUE(cluster.check());
  facts.cards[1].marked_unhealthy = false;
  cluster.set_node(facts);
  EXPECT_EQ(cluster.fit(pod("b", 10), "n").refusal, Refusal::None);
  EXPECT_FALSE(cluster.fit(pod("b", 10), "n").marked_unhealthy);
}

TEST(Nodes, SlotsAreCounted) {
  Cluster cluster;
  auto facts = node("n", {80});
  facts.cards[0].slots = 2;
  cluster.set_node(facts);
  ASSERT_TRUE(cluster.reserve(pod("a", 1), "n"));
  ASSERT_TRUE(cluster.reserve(pod("b", 1), "n"));
  EXPECT_EQ(cluster.fit(pod("c", 1), "n").refusal, Refusal::Slots);
}

TEST(Nodes, WholeGpusOfAPodAreNotChargedToSharedCardsOfItsNode) {
  Cluster cluster;
  auto facts = node("n", {80});
  facts.whole_gpus = 7;
  cluster.set_node(facts);
  cluster.set_pod(whole("a"), "n", nullptr);
  EXPECT_EQ(cluster.fit(pod("b", 80), "n").refusal, Refusal::None);
  EXPECT_THAT(cluster.view("n").unplaced, IsEmpty());
}

// After a start pods may be listed before their nodes; a kubelet that restarts reports no GPUs.
TEST(Nodes, WholeGpusThatAreHeardOfAfterTheirPodFreeTheSharedCards) {
  Cluster cluster;
  auto facts = node("n", {80});
  cluster.set_pod(whole("a"), "n", nullptr);
  cluster.set_node(facts);
  EXPECT_NE(cluster.fit(pod("b", 1), "n").refusal, Refusal::None);
  facts.whole_gpus = 7;
  cluster.set_node(facts);
  EXPECT_EQ(cluster.fit(pod("b", 80), "n").refusal, Refusal::None);
  EXPECT_THAT(cluster.view("n").unplaced, IsEmpty());
  EXPECT_TRUE(cluster.check());
}

// Past the webhook anybody can write UUIDs into a pod.
TEST(Nodes, MoreCardsThanThereCanBeAreLeftOut) {
  Cluster cluster;
  cluster.set_node(node("n", {80}));
  for (int each = 0; each < 5; ++each) {
    const auto uid = fmt::format("forged-{}", each);
    podspec::Placement placement{{"main", {}}};
    for (int i = 0; i < 1024; ++i)
      placement[0].parts.push_back({.uuid = {fmt::format("GPU-{}-{}", each, i)}, .mib = 1});
    cluster.set_pod(pod(uid, 1024, 0, 1024), "n", &placement);
  }
  cluster.set_node(node("n", {80, 80}));
  EXPECT_EQ(cluster.fit(pod("b", 80), "n").refusal, Refusal::None);
  EXPECT_TRUE(cluster.check());
}

TEST(Quota, CountsAPodWithoutAPlacementWhenItsNodeIsHeardOf) {
  Cluster cluster;
  cluster.set_quota("team", {.mib = 80 * kGiB});
  cluster.set_pod(pod("a", 50), "n", nullptr);
  cluster.set_node(node("n", {80}));
  cluster.set_node(node("m", {80}));
  EXPECT_EQ(cluster.used("team").mib, 50 * kGiB);
  EXPECT_EQ(cluster.fit(pod("b", 40), "m").refusal, Refusal::Quota);
  cluster.remove_pod("a");
  EXPECT_EQ(cluster.used("team").mib, 0U);
  EXPECT_TRUE(cluster.check());
}

TEST(Reservations, OfAPodThatIsAskedAboutAgainDoNotStandInItsWay) {
  Cluster cluster;
  cluster.set_node(node("n", {80}));
  cluster.set_node(node("m", {80}));
  ASSERT_TRUE(cluster.reserve(pod("a", 60), "n"));
  EXPECT_EQ(cluster.fit(pod("a", 60), "n").refusal, Refusal::None);
  ASSERT_TRUE(cluster.reserve(pod("a", 60), "m"));
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 0U);
  ASSERT_TRUE(cluster.reserve(pod("b", 60), "n"));
  EXPECT_FALSE(cluster.reserve(pod("a", 60), "n"));
  EXPECT_EQ(cluster.view("m").cards[0].used_mib, 60 * kGiB);  // what it had stays
}

TEST(Reservations, AreRefusedForAPodThatHasItsPlace) {
  Cluster cluster;
  cluster.set_node(node("n", {80}));
  const auto placement = cluster.reserve(pod("a", 60), "n");
  cluster.set_pod(pod("a", 60), "n", &*placement);
  EXPECT_EQ(cluster.reserve(pod("a", 60), "n").error().code(), Errc::Exists);
}

TEST(Quota, CountsEachCardAndWhatAPerCentOfItIs) {
  Cluster cluster;
  cluster.set_node(node("large", {80, 80}));
  cluster.set_node(node("small", {40, 40}));
  cluster.set_quota("team", {.mib = 50 * kGiB});
  EXPECT_EQ(cluster.fit(pod("two", 25, 0, 2), "large").refusal, Refusal::None);
  EXPECT_EQ(cluster.fit(pod("two", 26, 0, 2), "large").refusal, Refusal::Quota);
  auto maxima = pod("most", 0);
  maxima.containers.front().memory = {.kind = podspec::Amount::Kind::Percent, .value = 80};
  EXPECT_EQ(cluster.fit(maxima, "large").refusal, Refusal::Quota);
  EXPECT_EQ(cluster.fit(maxima, "small").refusal, Refusal::None);
  EXPECT_EQ(cluster.fit(pod("both", {container(30), container(30)}), "large").refusal,
            Refusal::Quota);
  EXPECT_EQ(cluster.fit(pod("big", 90), "large").refusal, Refusal::TooBig) << "quota or not";
}

TEST(Uses, AreWhatThePodsOfACardAndOfANamespaceHave) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 40}));
  ASSERT_TRUE(cluster.reserve(pod("a", 30, 20), "n").ok());
  ASSERT_TRUE(cluster.reserve(pod("b", 10, 5), "n").ok());
  std::vector<CardUse> uses(7);
  cluster.uses("n", uses);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].uuid, "GPU-n-0");
  EXPECT_EQ(uses[0].slots, 0U);
  EXPECT_EQ(uses[1].mib, 40 * kGiB);
  EXPECT_EQ(uses[1].cores, 25U);
  EXPECT_EQ(uses[1].slots, 2U);
  EXPECT_EQ(cluster.used("team").mib, 40 * kGiB);
  EXPECT_EQ(cluster.used("team").cores, 25U);
  cluster.release("a");
  EXPECT_EQ(cluster.used("team").mib, 10 * kGiB);
  EXPECT_EQ(cluster.used("nobody").mib, 0U);
  cluster.uses("nowhere", uses);
  EXPECT_TRUE(uses.empty());
}

TEST(Quota, CountsWhatTheNamespaceHasAndWhatIsReserved) {
  Cluster cluster;
  cluster.set_node(node("n", {80, 80}));
  cluster.set_quota("team", {.mib = 50 * kGiB, .cores = 60});
  ASSERT_TRUE(cluster.reserve(pod("a", 30, 30), "n"));
  EXPECT_EQ(cluster.fit(pod("b", 21), "n").refusal, Refusal::Quota);
  EXPECT_EQ(cluster.fit(pod("b", 20), "n").refusal, Refusal::None);
  EXPECT_EQ(cluster.fit(pod("b", 1, 31), "n").refusal, Refusal::Quota);
  EXPECT_EQ(cluster.reserve(pod("b", 21), "n").error().text(),
            "the GPU quota of namespace team is used up");
  auto elsewhere = pod("b", 21);
  elsewhere.pod.name_space = "other";
  EXPECT_EQ(cluster.fit(elsewhere, "n").refusal, Refusal::None);
  cluster.set_quota("team", {});
  EXPECT_EQ(cluster.fit(pod("b", 21), "n").refusal, Refusal::None);
  cluster.release("a");
  EXPECT_TRUE(cluster.check());
}

TEST(Hostile, NumbersNeitherWrapNorFit) {
  Cluster cluster;
  auto facts = node("n", {80});
  facts.cards.push_back({.uuid = {"huge"}, .index = 1, .mib = ~std::uint64_t{0}, .slots = ~0U});
  cluster.set_node(facts);
  constexpr auto kHugeMib = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(cluster.fit(pod("a", kHugeMib), "n").refusal, Refusal::TooBig);
  EXPECT_EQ(cluster.fit(pod("a", 1, 0, ~0U), "n").refusal, Refusal::TooBig);
  EXPECT_EQ(
      cluster.fit(pod("a", std::vector<podspec::ContainerRequest>(500, container(1))), "n").refusal,
      Refusal::TooBig);
  const podspec::Placement wild{{.container = "main",
                                 .parts = {{.uuid = {"GPU-n-0"}, .mib = kHugeMib, .cores = ~0U},
                                           {.uuid = {"?"}, .mib = kHugeMib}}}};
  for (int i = 0; i < 100; ++i) cluster.set_pod(pod(fmt::format("w{}", i), 1), "n", &wild);
  auto first = pod("a", 1);
  first.affinity.uuids = {{"GPU-n-0"}};
  EXPECT_EQ(cluster.fit(first, "n").refusal, Refusal::Memory);
  EXPECT_TRUE(cluster.check());
  for (int i = 0; i < 100; ++i) cluster.remove_pod(fmt::format("w{}", i));
  EXPECT_EQ(cluster.view("n").cards[0].used_mib, 0U);
  EXPECT_TRUE(cluster.check());
}

TEST(NameTable, FindsWhatWasPutInAndNotTakenOut) {
  NameTable names;
  std::map<std::string, std::uint32_t> truth;
  std::mt19937 random(3);
  std::vector<std::uint32_t> free;
  std::uint32_t next = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto name = fmt::format("node-{}", random() % 700);
    if (const auto found = truth.find(name); found != truth.end()) {
      EXPECT_EQ(names.find(name), found->second);
      names.erase(name);
      free.push_back(found->second);
      truth.erase(found);
      continue;
    }
    EXPECT_EQ(names.find(name), std::nullopt);
    const auto id = free.empty() ? next++ : free.back();
    if (!free.empty()) free.pop_back();
    names.insert(name, id);
    truth[name] = id;
  }
  EXPECT_EQ(names.size(), truth.size());
  for (const auto& [name, id] : truth) {
    EXPECT_EQ(names.find(name), id);
    EXPECT_EQ(names[id], name);
  }
}

TEST(Sentence, HasTheNumbersOfTheAskInTheUnitOfTheNode) {
  EXPECT_EQ(describe(Refusal::Memory, pod("a", 10)), "no GPU here has 10 GiB of memory free");
  EXPECT_EQ(describe(Refusal::Memory, pod("a", 2000), 1),
            "no GPU here has 2000 MiB of memory free");
  EXPECT_EQ(describe(Refusal::Memory, pod("a", 10, 0, 2)),
            "fewer than 2 GPUs here have 10 GiB of memory free");
  EXPECT_EQ(describe(Refusal::TooBig, pod("a", 200)),
            "no GPU here has 200 GiB of memory, even when empty");
  EXPECT_EQ(describe(Refusal::Cores, pod("a", 1, 30)),
            "no GPU here with 1 GiB of memory free has 30 % of its time left");
  EXPECT_EQ(describe(Refusal::Exclusive, whole("a")), "no GPU here is free of other pods");
  EXPECT_EQ(describe(Refusal::NoSharedGpus, pod("a", 1)), "no shared GPUs here");
}

}  // namespace
}  // namespace gantry::placement
