// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_cache.hpp"

#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using ::testing::HasSubstr;

class ClusterCacheTest : public ::testing::Test {
 protected:
  ClusterCacheTest() { EXPECT_TRUE(cache.set_node(node_object("n1", {80}).root()).ok()); }
  std::uint64_t used() const { return cache.view("n1").cards.at(0).used_mib / 1024; }
  Status tell(const TestPod& sketch) { return cache.set_pod(pod_object(sketch).root(), now); }
  podspec::PodRequest ask(const TestPod& sketch) {
    return **podspec::parse_request(pod_object(sketch).root());
  }
  TestPod bound(const std::string& uid, std::uint64_t gib) {
    return {.uid = uid,
            .gpu_mem = fmt::to_string(gib),
            .node = "n1",
            .placement = on_card("GPU-n1-0", gib)};
  }

  ClusterCache cache;
  TimePoint now;
};

TEST_F(ClusterCacheTest, APodCountsWhileItHasANodeAndIsNotOver) {
  EXPECT_TRUE(tell({.uid = "a", .gpu_mem = "10"}).ok());
  EXPECT_EQ(used(), 0U);
  EXPECT_TRUE(tell(bound("a", 10)).ok());
  EXPECT_EQ(used(), 10U);
  auto over = bound("a", 10);
  over.phase = "Succeeded";
  EXPECT_TRUE(tell(over).ok());
  EXPECT_EQ(used(), 0U);
}

TEST_F(ClusterCacheTest, AnOlderVersionOfAPodChangesNothing) {
  auto newer = bound("a", 10);
  newer.version = 8;
  EXPECT_TRUE(tell(newer).ok());
  EXPECT_TRUE(tell({.uid = "a", .gpu_mem = "10", .version = 7}).ok());
  EXPECT_EQ(used(), 10U);
}

TEST_F(ClusterCacheTest, APodThatEndedDoesNotComeBackByAListAskedForBefore) {
  EXPECT_TRUE(tell(bound("a", 10)).ok());
  cache.remove_pod("a", now);
  EXPECT_TRUE(tell(bound("a", 10)).ok());
  EXPECT_EQ(used(), 0U);
}

TEST_F(ClusterCacheTest, APodThatIsOverDoesNotComeBackByAListAskedForBefore) {
  auto running = bound("a", 10);
  running.version = 7;
  auto over = bound("a", 10);
  over.phase = "Succeeded";
  over.version = 8;
  EXPECT_TRUE(tell(running).ok());
  EXPECT_TRUE(tell(over).ok());
  EXPECT_TRUE(tell(running).ok());
  EXPECT_EQ(used(), 0U);
}

// HAMi knows a policy that we refuse in new pods; one that runs has its memory all the same.
TEST_F(ClusterCacheTest, APodOfAnotherSchedulerCountsWhateverItsWishesAre) {
  const auto pod = R"({"metadata":{"name":"old","namespace":"team","uid":"old","annotations":{)"
                   R"("hami.io/gpu-scheduler-policy":"mutex",)"
                   R"("hami.io/vgpu-devices-allocated":"GPU-n1-0,NVIDIA,30720,0:;"}},)"
                   R"("spec":{"nodeName":"n1","containers":[{"name":"main","resources":{)"
                   R"("limits":{"nvidia.com/gpu":"1","nvidia.com/gpumem":"30720"}}}]}})";
  EXPECT_TRUE(cache.set_pod(parsed(pod).root(), now).ok());
  EXPECT_EQ(used(), 30U);
}

TEST_F(ClusterCacheTest, WhatAPodWasGivenStaysWhenItsAnnotationsAreEdited) {
  EXPECT_TRUE(tell(bound("a", 10)).ok());
  auto edited = bound("a", 10);
  edited.placement = on_card("GPU-n1-0", 1);
  EXPECT_TRUE(tell(edited).ok());
  EXPECT_EQ(used(), 10U);
  edited.placement = "nonsense";
  EXPECT_TRUE(tell(edited).ok());
  EXPECT_EQ(used(), 10U);
}

TEST_F(ClusterCacheTest, APodThatAsksForMoreGpusThanItWasBoundToHoldsThoseAlone) {
  EXPECT_TRUE(cache.set_node(node_object("n2", {80, 80}).root()).ok());
  EXPECT_FALSE(tell({.uid = "a",
                     .gpu_mem = "40",
                     .node = "n2",
                     .placement = on_card("GPU-n2-0", 40),
                     .annotations = R"("gantry.dev/gpus":"2")"})
                   .ok());
  EXPECT_EQ(cache.view("n2").cards.at(0).used_mib, 40U * 1024);
  EXPECT_EQ(cache.view("n2").cards.at(1).used_mib, 0U);
}

TEST_F(ClusterCacheTest, APodOnWholeGpusIsBoundWithoutAWordAboutCards) {
  EXPECT_TRUE(cache
                  .set_node(parsed(R"({"metadata":{"name":"w"},"status":{"allocatable":{)"
                                   R"("nvidia.com/gpu":"8"}}})")
                                .root())
                  .ok());
  const auto pod = parsed(R"({"metadata":{"name":"p","namespace":"team","uid":"p"},"spec":{)"
                          R"("containers":[{"name":"c","resources":{"limits":{)"
                          R"("nvidia.com/gpu":"1"}}}]}})");
  const auto decision = cache.assumed(**podspec::parse_request(pod.root()), "w", 1, now);
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->annotations.empty());
}

TEST_F(ClusterCacheTest, AStaticPodIsNeverAVictim) {
  auto fixed = bound("a", 60);
  fixed.annotations = R"("kubernetes.io/config.mirror":"x")";
  EXPECT_TRUE(tell(fixed).ok());
  const auto first = ask({.uid = "first", .gpu_mem = "50", .priority = 9});
  EXPECT_FALSE(cache.victims(first, "n1", {}).ok());
  cache.remove_pod("a", now);
  EXPECT_TRUE(tell(bound("b", 60)).ok());
  EXPECT_TRUE(cache.victims(first, "n1", {}).ok());
}

TEST_F(ClusterCacheTest, NewsThatChangeNoAnswerAreNoNewGeneration) {
  EXPECT_TRUE(tell(bound("a", 10)).ok());
  const auto before = cache.generation();
  auto running = bound("a", 10);
  running.phase = "Running";
  running.version = 9;
  EXPECT_TRUE(tell(running).ok());
  EXPECT_TRUE(cache.set_node(node_object("n1", {80}).root()).ok());
  EXPECT_EQ(cache.generation(), before);
}

TEST_F(ClusterCacheTest, APromiseHoldsTheCardUntilTheWatchShowsThePod) {
  const auto decision = cache.assumed(ask({.uid = "a", .gpu_mem = "50"}), "n1", 1, now);
  ASSERT_TRUE(decision.ok());
  EXPECT_THAT(decision->annotations.at(std::string(podspec::kPlacementAnnotation)),
              HasSubstr("GPU-n1-0"));
  EXPECT_EQ(used(), 50U);
  EXPECT_FALSE(cache.assumed(ask({.uid = "b", .gpu_mem = "50"}), "n1", 1, now).ok());
  EXPECT_TRUE(tell(bound("a", 50)).ok());
  EXPECT_EQ(used(), 50U);
  EXPECT_TRUE(cache.assumed_pods().empty());
  cache.release("a");
  EXPECT_EQ(used(), 50U) << "the pod is there";
}

TEST_F(ClusterCacheTest, APromiseThatIsReleasedIsFree) {
  ASSERT_TRUE(cache.assumed(ask({.uid = "a", .gpu_mem = "50"}), "n1", 1, now).ok());
  cache.release("a");
  EXPECT_EQ(used(), 0U);
}

TEST_F(ClusterCacheTest, APodWhoseBindingMayStillComeThroughIsNotPutElsewhere) {
  EXPECT_TRUE(cache.set_node(node_object("n2", {80}).root()).ok());
  const auto pod = ask({.uid = "a", .gpu_mem = "50"});
  const auto first = cache.assumed(pod, "n1", 1, now);
  ASSERT_TRUE(first.ok());
  cache.mark("a", AssumedPod::State::Unknown, now);
  EXPECT_EQ(cache.node_of_unknown_binding("a"), "n1");
  const auto other = cache.assumed(pod, "n2", 1, now);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::Busy);
  const auto again = cache.assumed(pod, "n1", 1, now);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->again);
  EXPECT_EQ(again->placement, first->placement);
}

TEST_F(ClusterCacheTest, APodOfGpusharesOwnSchedulerIsCountedOnceItsNodeIsKnown) {
  const auto pod = R"({"metadata":{"name":"old","namespace":"team","uid":"old","annotations":{)"
                   R"("ALIYUN_COM_GPU_MEM_IDX":"1","ALIYUN_COM_GPU_MEM_POD":"7"}},)"
                   R"("spec":{"nodeName":"late","containers":[{"name":"main","resources":{)"
                   R"("limits":{"aliyun.com/gpu-mem":"7"}}}]}})";
  EXPECT_TRUE(cache.set_pod(parsed(pod).root(), now).ok());
  EXPECT_TRUE(cache.set_node(node_object("late", {16, 16}).root()).ok());
  const auto view = cache.view("late");
  EXPECT_EQ(view.cards.at(0).used_mib, 0U);
  EXPECT_EQ(view.cards.at(1).used_mib, 7U * 1024);
}

TEST_F(ClusterCacheTest, TheTighterOfTwoQuotasHolds) {
  EXPECT_TRUE(cache
                  .set_namespace(parsed(R"({"metadata":{"name":"team","annotations":{)"
                                        R"("gantry.dev/gpu-memory-quota":"30Gi"}}})")
                                     .root())
                  .ok());
  EXPECT_TRUE(cache
                  .set_resource_quota(
                      parsed(R"({"metadata":{"name":"q","namespace":"team"},"spec":{"hard":{)"
                             R"("limits.nvidia.com/gpumem":"20k"}}})")
                          .root())
                  .ok());
  const auto quotas = cache.quotas();
  ASSERT_EQ(quotas.size(), 1U);
  EXPECT_EQ(quotas[0].limit.mib, 20'000U);
  EXPECT_FALSE(cache.assumed(ask({.uid = "a", .gpu_mem = "25"}), "n1", 1, now).ok());
  cache.remove_resource_quota("team", "q");
  EXPECT_TRUE(cache.assumed(ask({.uid = "a", .gpu_mem = "25"}), "n1", 1, now).ok());
}

TEST_F(ClusterCacheTest, AQuotaEndsWithItsNamespace) {
  EXPECT_TRUE(cache
                  .set_namespace(parsed(R"({"metadata":{"name":"team","annotations":{)"
                                        R"("gantry.dev/gpu-memory-quota":"30Gi"}}})")
                                     .root())
                  .ok());
  EXPECT_FALSE(cache.assumed(ask({.uid = "a", .gpu_mem = "40"}), "n1", 1, now).ok());
  cache.remove_namespace("team");
  EXPECT_TRUE(cache.quotas().empty());
  EXPECT_TRUE(cache.assumed(ask({.uid = "a", .gpu_mem = "40"}), "n1", 1, now).ok());
}

TEST_F(ClusterCacheTest, AQuotaThatIsNoneIsSaidAndLimitsNothing) {
  const auto set = cache.set_namespace(
      parsed(R"({"metadata":{"name":"team","annotations":{"gantry.dev/gpu-memory-quota":"much"}}})")
          .root());
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().text(), HasSubstr("write 80Gi"));
  EXPECT_TRUE(cache.quotas().empty());
}

TEST_F(ClusterCacheTest, ANodeWhoseAnnotationIsNoneHasNoGpus) {
  const auto set = cache.set_node(
      parsed(R"({"metadata":{"name":"n1","annotations":{"gantry.dev/shared-gpus":"{"}}})").root());
  EXPECT_FALSE(set.ok());
  EXPECT_FALSE(cache.assumed(ask({.uid = "a", .gpu_mem = "1"}), "n1", 1, now).ok());
}

}  // namespace
}  // namespace gantry::scheduler
