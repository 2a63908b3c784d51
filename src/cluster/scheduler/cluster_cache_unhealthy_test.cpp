// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/explain_pod.hpp"
#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using placement::Refusal;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kReportTime = 1'800'000'000;

class UnhealthyGpusTest : public ::testing::Test {
 protected:
  UnhealthyGpusTest() { set_node(); }
  void set_node() { EXPECT_TRUE(cache.set_node(node_object("n1", {80, 80}).root()).ok()); }
  void mark_unhealthy(const std::string& gpus) {
    EXPECT_TRUE(
        cache
            .set_unhealthy_gpus(parsed(fmt::format(R"({{"metadata":{{"name":"unhealthy-gpu-n1"}},)"
                                                   R"("data":{{"gpus":"{}"}}}})",
                                                   gpus))
                                    .root())
            .ok());
  }
  void unbar() { cache.remove_unhealthy_gpus("unhealthy-gpu-n1"); }
  void put(const std::string& uid, std::uint32_t card, std::uint64_t gib, int priority = 0) {
    const TestPod pod{.uid = uid,
                      .gpu_mem = fmt::to_string(gib),
                      .node = "n1",
                      .placement = on_card(fmt::format("GPU-n1-{}", card), gib),
                      .priority = priority};
    EXPECT_TRUE(cache.set_pod(pod_object(pod).root(), now).ok());
  }
  podspec::PodRequest ask(const std::string& gib, int priority = 0) const {
    const TestPod pod{.uid = "new", .gpu_mem = gib, .priority = priority};
    return **podspec::parse_request(pod_object(pod).root());
  }
  placement::Fit fit(const std::string& gib) const {
    const std::string_view node = "n1";
    std::vector<placement::Fit> fits;
    cache.fit(ask(gib), std::span(&node, 1), fits);
    return fits.at(0);
  }
  std::string why(const std::string& gib) const { return to_text(explain_pod(cache, ask(gib))); }

  ClusterCache cache;
  TimePoint now;
};

TEST_F(UnhealthyGpusTest, NoPodIsPlacedOnAMarkedCard) {
  put("a", 1, 50);
  mark_unhealthy("0");
  EXPECT_EQ(fit("20").refusal, Refusal::None);
  EXPECT_EQ(fit("40").refusal, Refusal::Memory) << "the empty card is marked unhealthy";
  const auto refused = cache.assumed(ask("40"), "n1", 1, now);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("kube-system/unhealthy-gpu-n1"));
  const auto given = cache.assumed(ask("20"), "n1", 1, now);
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->placement[0].parts[0].index, 1U);
}

TEST_F(UnhealthyGpusTest, ItIsUsableAgainWhenTheConfigMapIsGoneOrNoLongerNamesIt) {
  mark_unhealthy("0,1");
  EXPECT_EQ(fit("80").refusal, Refusal::Unhealthy);
  mark_unhealthy("1");
  EXPECT_EQ(fit("80").refusal, Refusal::None);
  mark_unhealthy("0,1");
  unbar();
  EXPECT_EQ(fit("80").refusal, Refusal::None);
  EXPECT_TRUE(cache.assumed(ask("80"), "n1", 1, now).ok());
}

TEST_F(UnhealthyGpusTest, PodsOnItCountAsBefore) {
  put("a", 0, 50);
  mark_unhealthy("0");
  EXPECT_EQ(cache.view("n1").cards.at(0).used_mib, 50U * 1024);
  put("b", 0, 10);
  EXPECT_EQ(cache.view("n1").cards.at(0).used_mib, 60U * 1024);
  cache.remove_pod("a", now);
  unbar();
  EXPECT_EQ(cache.view("n1").cards.at(0).used_mib, 10U * 1024);
  EXPECT_EQ(fit("80").refusal, Refusal::None) << "on the other one";
}

TEST_F(UnhealthyGpusTest, NoPodIsEvictedForRoomOnAMarkedCard) {
  put("low", 0, 80);
  put("high", 1, 80, 200);
  const std::vector<std::string> nodes{"n1"};
  ASSERT_TRUE(cache.plan_preemption(ask("60", 100), nodes, {}, kReportTime).ok());
  ASSERT_TRUE(cache.victims(ask("60", 100), "n1", {}).ok());
  mark_unhealthy("0");
  EXPECT_FALSE(cache.plan_preemption(ask("60", 100), nodes, {}, kReportTime).ok());
  EXPECT_FALSE(cache.victims(ask("60", 100), "n1", {}).ok());
}

TEST_F(UnhealthyGpusTest, TheReasonNamesTheConfigMapWhereItMayBeTheReason) {
  EXPECT_THAT(why("81"), Not(HasSubstr("ConfigMap")));
  mark_unhealthy("0,1");
  EXPECT_THAT(why("80"), HasSubstr("no GPU here with 80 GiB of memory is healthy (some are marked "
                                   "unhealthy by ConfigMap kube-system/unhealthy-gpu-n1)"));
  EXPECT_THAT(why("81"), Not(HasSubstr("ConfigMap"))) << "no card is that large";
  unbar();
  put("a", 0, 50);
  put("b", 1, 50);
  EXPECT_THAT(why("80"), Not(HasSubstr("ConfigMap")));
}

TEST_F(UnhealthyGpusTest, ConfigMapAndNodeComeInAnyOrderAndTheNodeMayComeAgain) {
  cache.remove_node("n1");
  mark_unhealthy("1");
  set_node();
  EXPECT_TRUE(cache.view("n1").cards.at(1).facts.marked_unhealthy);
  EXPECT_TRUE(cache.set_node(node_object("n1", {80, 80, 80}).root()).ok());
  EXPECT_TRUE(cache.view("n1").cards.at(1).facts.marked_unhealthy);
  EXPECT_FALSE(cache.view("n1").cards.at(2).facts.marked_unhealthy);
}

TEST_F(UnhealthyGpusTest, OnlyWhatChangesAnAnswerIsANewGeneration) {
  mark_unhealthy("1");
  const auto before = cache.generation();
  mark_unhealthy("1");
  mark_unhealthy("1,7");
  set_node();
  EXPECT_EQ(cache.generation(), before);
  unbar();
  EXPECT_GT(cache.generation(), before);
}

TEST_F(UnhealthyGpusTest, ACardOfGpusharesOwnNodeIsMarkedByItsIndexToo) {
  const auto node = R"({"metadata":{"name":"n1"},"status":{"capacity":{"aliyun.com/gpu-mem":"32",)"
                    R"("aliyun.com/gpu-count":"2"},"allocatable":{"aliyun.com/gpu-mem":"32"}}})";
  EXPECT_TRUE(cache.set_node(parsed(node).root()).ok());
  mark_unhealthy("0");
  const auto given = cache.assumed(ask("10"), "n1", 1, now);
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->placement[0].parts[0].index, 1U);
}

}  // namespace
}  // namespace gantry::scheduler
