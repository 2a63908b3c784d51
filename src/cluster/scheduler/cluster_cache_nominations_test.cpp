// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/cluster_cache.hpp"
#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr std::int64_t kNow = 1'800'000'000;  // 2027-01-15T08:00:00Z
constexpr const char* kGoing = "2027-01-15T08:00:20Z";
constexpr const char* kOverdue = "2027-01-15T07:00:00Z";

// A node of two cards of 40 GiB with a pod of 30 on each.
class ClusterCacheNominationsTest : public ::testing::Test {
 protected:
  ClusterCacheNominationsTest() {
    EXPECT_TRUE(cache.set_node(node_object("n", {40, 40}).root()).ok());
    tell(on("a", 0, 30));
    tell(on("b", 1, 30));
  }
  static TestPod on(const std::string& uid, int card, std::uint64_t gib) {
    return {.uid = uid,
            .gpu_mem = fmt::to_string(gib),
            .node = "n",
            .placement = on_card(fmt::format("GPU-n-{}", card), gib)};
  }
  void tell(const TestPod& sketch) {
    EXPECT_TRUE(cache.set_pod(pod_object(sketch).root(), now).ok());
  }
  void terminating(TestPod sketch, const char* by = kGoing) {
    sketch.deletion_time = by;
    tell(sketch);
  }
  static podspec::PodRequest ask(const TestPod& sketch) {
    return **podspec::parse_request(pod_object(sketch).root());
  }
  Result<PreemptionPlan> room(const podspec::PodRequest& asked) const {
    const std::vector<std::string> nodes{"n"};
    return cache.plan_preemption(asked, nodes, {}, kNow);
  }
  bool fits(const TestPod& sketch) const {
    const std::string_view node = "n";
    std::vector<placement::Fit> answer;
    cache.fit(ask(sketch), std::span(&node, 1), answer);
    return answer[0].refusal == placement::Refusal::None;
  }

  ClusterCache cache;
  TimePoint now;
  TestPod first{.uid = "first", .gpu_mem = "20", .priority = 100};
  TestPod late{.uid = "late", .gpu_mem = "25"};
};

TEST_F(ClusterCacheNominationsTest, OneOfLowerPriorityHasToGo) {
  const auto found = room(ask(first));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->node, "n");
  ASSERT_EQ(found->victims.size(), 1U);
  EXPECT_EQ(found->victims[0].pod.name, "pod-a");
  first.priority = 0;
  EXPECT_EQ(room(ask(first)).error().code(), Errc::NotFound);
}

TEST_F(ClusterCacheNominationsTest, PodsThatAreBeingDeletedAreEnough) {
  terminating(on("b", 1, 30));
  const auto found = room(ask(first));
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->victims, IsEmpty());
  EXPECT_THAT(found->terminating, testing::ElementsAre("b"));
}

TEST_F(ClusterCacheNominationsTest, WhoDoesNotGoInTimeIsNotCountedOn) {
  terminating(on("b", 1, 30), kOverdue);
  const auto found = room(ask(first));
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->victims.size(), 1U);
  EXPECT_EQ(found->victims[0].pod.uid, "a");
}

TEST_F(ClusterCacheNominationsTest, StaticPodsAndThoseOfOtherSchedulersAreNoVictims) {
  ClusterCache other;
  EXPECT_TRUE(other.set_node(node_object("n", {40}).root()).ok());
  auto fixed = on("static", 0, 30);
  fixed.annotations = R"("kubernetes.io/config.mirror":"x")";
  EXPECT_TRUE(other.set_pod(pod_object(fixed).root(), now).ok());
  const std::vector<std::string> nodes{"n"};
  EXPECT_FALSE(other.plan_preemption(ask(first), nodes, {}, kNow).ok());
  other.remove_pod("static", now);
  TestPod legacy{.uid = "old", .gpu_mem = "30", .node = "n"};
  legacy.annotations = R"("ALIYUN_COM_GPU_MEM_IDX":"0","ALIYUN_COM_GPU_MEM_POD":"30")";
  EXPECT_TRUE(other.set_pod(pod_object(legacy).root(), now).ok());
  EXPECT_FALSE(other.plan_preemption(ask(first), nodes, {}, kNow).ok());
}

TEST_F(ClusterCacheNominationsTest, RoomIsForThePodAloneUntilItIsThere) {
  tell(first);
  const auto found = room(ask(first));
  ASSERT_TRUE(cache.add_nomination(ask(first), *found, now).ok());
  EXPECT_FALSE(fits(first));
  cache.remove_pod("a", now);
  EXPECT_FALSE(fits(late));
  ASSERT_TRUE(fits(first));
  ASSERT_TRUE(cache.assumed(ask(first), "n", 1, now).ok());
  cache.release("first");  // its Binding was refused
  EXPECT_TRUE(cache.nomination("first"));
  EXPECT_FALSE(fits(late));
  auto there = on("first", 0, 20);
  there.priority = 100;
  tell(there);
  EXPECT_FALSE(cache.nomination("first"));
  EXPECT_EQ(cache.view("n").cards[0].used_mib, 20U * 1024);
}

TEST_F(ClusterCacheNominationsTest, RoomIsNotKeptForAPodThatIsGone) {
  tell(first);
  ASSERT_TRUE(cache.add_nomination(ask(first), *room(ask(first)), now).ok());
  cache.remove_pod("a", now);
  cache.remove_pod("first", now);
  EXPECT_TRUE(fits(late));
}

TEST_F(ClusterCacheNominationsTest, UnusedRoomIsForAllAfterAMinute) {
  tell(first);
  ASSERT_TRUE(cache.add_nomination(ask(first), *room(ask(first)), now).ok());
  cache.expire_nominations(now + minutes(5));
  EXPECT_TRUE(cache.nomination("first")) << "a is not gone yet";
  cache.remove_pod("a", now);
  cache.expire_nominations(now + minutes(6));
  cache.expire_nominations(now + minutes(6) + seconds(50));
  EXPECT_TRUE(cache.nomination("first"));
  cache.expire_nominations(now + minutes(7) + seconds(1));
  EXPECT_FALSE(cache.nomination("first"));
  EXPECT_TRUE(fits(late));
}

TEST_F(ClusterCacheNominationsTest, NothingIsKeptForEver) {
  tell(first);
  ASSERT_TRUE(cache.add_nomination(ask(first), *room(ask(first)), now).ok());
  cache.expire_nominations(now + minutes(10) + seconds(1));
  EXPECT_FALSE(cache.nomination("first"));
}

TEST_F(ClusterCacheNominationsTest, TheCardThatKubeSchedulerHasFreedIsForThePodThatItNominated) {
  auto nominated = first;
  nominated.nominated = "n";
  tell(nominated);
  EXPECT_FALSE(cache.nomination("first")) << "nobody goes yet";
  terminating(on("a", 0, 30));
  ASSERT_TRUE(cache.nomination("first"));
  cache.remove_pod("a", now);
  EXPECT_FALSE(fits(late));
  EXPECT_TRUE(fits(first));
}

TEST_F(ClusterCacheNominationsTest, TheSameWhenTheVictimIsGoneAtOnce) {
  auto nominated = first;
  nominated.nominated = "n";
  tell(nominated);
  cache.remove_pod("a", now);
  EXPECT_FALSE(fits(late));
  tell(first);  // kube-scheduler has thought better of it
  EXPECT_TRUE(fits(late));
}

TEST_F(ClusterCacheNominationsTest, KubeSchedulersVictimsAreNotMoreForThoseWhoGoAnyway) {
  terminating(on("b", 1, 30));
  const std::vector<std::string> chosen{"without-gpu"};
  const auto all = cache.victims(ask(first), "n", chosen);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, chosen);
}

}  // namespace
}  // namespace gantry::scheduler
