// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/evictor.hpp"

#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gantry::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kEvictionTime = 1'800'000'000;  // 2027-01-15T08:00:00Z
constexpr const char* kDeletionTime = "2027-01-15T08:00:20Z";

// Two cards of 40 GiB with a pod of 30 on each, and one of 20 that matters more.
class EvictorTest : public ::testing::Test {
 protected:
  EvictorTest() {
    EXPECT_TRUE(cache.set_node(node_object("n", {40, 40}).root()).ok());
    tell(on("a", 0));
    tell(on("b", 1));
    tell(first);
  }
  static TestPod on(const std::string& uid, int card) {
    return {.uid = uid,
            .gpu_mem = "30",
            .node = "n",
            .placement = on_card(fmt::format("GPU-n-{}", card), 30)};
  }
  void tell(const TestPod& sketch) {
    EXPECT_TRUE(cache.set_pod(pod_object(sketch).root(), now).ok());
  }
  static podspec::PodRequest ask(const TestPod& sketch) {
    return **podspec::parse_request(pod_object(sketch).root());
  }
  EvictApi api_calls() {
    return {
        .evict = [this](const kube::Eviction& eviction) { return evict(eviction); },
        .read = [this](const std::string&, const std::string&) -> Result<json::Document> {
          return pod_object(first);
        },
        .lead = [this]() -> Result<milliseconds> { return lead; },
        .nominate = [this](const podspec::PodRequest& asked, const std::string& node) -> Status {
          first.nominated = node;
          EXPECT_EQ(asked.pod.uid, first.uid);
          tell(first);
          return {};
        },
        .tell = [this](kube::Event event) { events.push_back(std::move(event)); },
        .warn = {}};
  }
  kube::EvictionResult evict(const kube::Eviction& eviction) {
    if (protected_.contains(eviction.pod.uid))
      return {kube::EvictionOutcome::Protected, "the budget is spent"};
    if (eviction.mode == kube::Eviction::Mode::Ask) return {kube::EvictionOutcome::Done, ""};
    evicted.push_back(eviction.pod.uid);
    auto terminating = on(eviction.pod.uid, eviction.pod.uid == "a" ? 0 : 1);
    terminating.deletion_time = kDeletionTime;
    tell(terminating);
    return {kube::EvictionOutcome::Done, ""};
  }
  void refused(Evictor& by) { by.refused({.ask = ask(first), .nodes = {"n"}}, now); }
  void pass(Evictor& by, seconds time) {
    for (seconds done{0}; done < time; done += seconds(1)) {
      now += seconds(1);
      by.reconcile(now, kEvictionTime);
    }
  }

  TestPod first{.uid = "first", .gpu_mem = "20", .priority = 100};
  ClusterCache cache;
  SchedulerCounters counters;
  TimePoint now{seconds(1000)};
  milliseconds lead{10'000};
  std::set<std::string> protected_;
  std::vector<std::string> evicted;
  std::vector<kube::Event> events;
  Evictor evictor{cache, counters, api_calls()};
};

TEST_F(EvictorTest, OnePodGoesAndItsRoomIsKeptAndBothGetAnEvent) {
  refused(evictor);
  pass(evictor, seconds(2));
  EXPECT_THAT(evicted, IsEmpty()) << "kube-scheduler may find room by itself";
  pass(evictor, seconds(60));
  EXPECT_THAT(evicted, ElementsAre("a"));
  EXPECT_TRUE(cache.nomination("first"));
  EXPECT_EQ(first.nominated, "n");
  EXPECT_EQ(counters.evicted.load(), 1U);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].object.name, "pod-a");
  EXPECT_EQ(events[0].reason, "Preempted");
  EXPECT_EQ(events[0].message,
            "evicted to make room on a GPU of node n for pod team/pod-first, whose priority 100 is "
            "higher than 0");
  EXPECT_EQ(events[1].object.name, "pod-first");
  EXPECT_EQ(events[1].message,
            "team/pod-a of lower priority is evicted from GPU 0 of node n to make room for this "
            "pod; the room is kept for it");
  EXPECT_EQ(evictor.progress("first"), events[1].message);
}

TEST_F(EvictorTest, ThePriorityIsThatOfThePodAndNotOfTheQuestion) {
  auto claimed = ask(first);
  first.priority = 0;
  evictor.refused({.ask = std::move(claimed), .nodes = {"n"}}, now);
  pass(evictor, seconds(60));
  EXPECT_THAT(evicted, IsEmpty());
  EXPECT_FALSE(cache.nomination("first"));
}

// Its node may be cordoned by now: then kube-scheduler asks no more.
TEST_F(EvictorTest, AnOldQuestionEvictsNoPod) {
  protected_ = {"a", "b"};
  refused(evictor);
  pass(evictor, minutes(8));
  protected_.clear();
  pass(evictor, minutes(2));
  EXPECT_THAT(evicted, IsEmpty());
  refused(evictor);
  pass(evictor, minutes(1));
  EXPECT_THAT(evicted, ElementsAre("a"));
}

TEST_F(EvictorTest, AReplicaThatDoesNotLeadEvictsNoPod) {
  lead = milliseconds(3000);  // less than a request may take
  refused(evictor);
  pass(evictor, seconds(60));
  EXPECT_THAT(evicted, IsEmpty());
  EXPECT_FALSE(cache.nomination("first"));
}

TEST_F(EvictorTest, AnotherOneGoesWhereABudgetProtectsTheFirst) {
  protected_ = {"a"};
  refused(evictor);
  pass(evictor, seconds(10));
  EXPECT_THAT(evicted, ElementsAre("b"));
}

TEST_F(EvictorTest, WhereAllAreProtectedItWaitsAndSaysWhyAndTriesAgain) {
  protected_ = {"a", "b"};
  refused(evictor);
  pass(evictor, seconds(10));
  EXPECT_THAT(evicted, IsEmpty());
  EXPECT_FALSE(cache.nomination("first"));
  EXPECT_THAT(evictor.progress("first"), HasSubstr("the budget is spent"));
  protected_.clear();
  pass(evictor, seconds(60));
  EXPECT_EQ(evicted.size(), 1U);
}

TEST_F(EvictorTest, TheNextLeaderEvictsNoFurtherPod) {
  refused(evictor);
  pass(evictor, seconds(5));
  ASSERT_THAT(evicted, ElementsAre("a"));
  cache.end_nomination("first");  // what dies with the process
  Evictor next(cache, counters, api_calls());
  refused(next);
  pass(next, seconds(60));
  EXPECT_THAT(evicted, ElementsAre("a"));
  EXPECT_TRUE(cache.nomination("first")) << "and the room is kept again";
}

TEST_F(EvictorTest, KubeSchedulerIsLeftAloneWhileItMakesRoomItself) {
  first.nominated = "n";
  refused(evictor);
  pass(evictor, seconds(15));
  EXPECT_THAT(evicted, IsEmpty());
  EXPECT_THAT(evictor.progress("first"), HasSubstr("making room for it"));
  pass(evictor, seconds(15));
  EXPECT_EQ(evicted.size(), 1U) << "nothing came of it";
}

TEST_F(EvictorTest, ANominatedPodWhoseVictimsAreGoingHasNoMoreOfThem) {
  first.nominated = "n";
  tell(first);
  auto terminating = on("b", 1);
  terminating.deletion_time = kDeletionTime;
  tell(terminating);
  refused(evictor);
  pass(evictor, seconds(100));
  EXPECT_THAT(evicted, IsEmpty());
}

TEST_F(EvictorTest, PreemptionPolicyNeverIsHeldTo) {
  first.policy = "Never";
  refused(evictor);
  pass(evictor, seconds(60));
  EXPECT_THAT(evicted, IsEmpty());
  EXPECT_THAT(evictor.progress("first"), HasSubstr("Never"));
}

TEST_F(EvictorTest, NoPodGoesForOneOfEqualPriorityOrThatFitsByNowOrIsGone) {
  first.priority = 0;
  refused(evictor);
  pass(evictor, seconds(30));
  EXPECT_THAT(evicted, IsEmpty());
  first.priority = 100;
  refused(evictor);
  cache.remove_pod("b", now);
  pass(evictor, seconds(30));
  EXPECT_THAT(evicted, IsEmpty());
  cache.remove_pod("first", now);
  pass(evictor, seconds(30));
  EXPECT_EQ(evictor.progress("first"), "");
}

TEST_F(EvictorTest, APodThatDoesNotComeIsNotMadeRoomForAgainAtOnce) {
  refused(evictor);
  pass(evictor, seconds(5));
  ASSERT_THAT(evicted, ElementsAre("a"));
  cache.remove_pod("a", now);
  pass(evictor, seconds(65));
  EXPECT_FALSE(cache.nomination("first"));
  auto again = on("c", 0);  // somebody takes what was free for all
  tell(again);
  refused(evictor);
  pass(evictor, seconds(20));
  EXPECT_EQ(evicted.size(), 2U) << "the first minute is over";
  EXPECT_TRUE(cache.nomination("first"));
}

TEST_F(EvictorTest, AfterItsEndNothingIsSent) {
  refused(evictor);
  evictor.stop();
  pass(evictor, seconds(60));
  EXPECT_THAT(evicted, IsEmpty());
}

}  // namespace
}  // namespace gantry::scheduler
