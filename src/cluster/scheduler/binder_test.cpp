// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/binder.hpp"

#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace gantry::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class BinderTest : public ::testing::Test {
 protected:
  BinderTest() { EXPECT_TRUE(cache.set_node(node_object("n1", {80}).root()).ok()); }

  std::uint64_t used() const { return cache.view("n1").cards.at(0).used_mib / 1024; }
  void pend(const std::string& uid, const std::string& gib) {
    EXPECT_TRUE(cache.set_pod(pod_object({.uid = uid, .gpu_mem = gib}).root(), {}).ok());
  }
  http::Response bind(const std::string& uid, const std::string& node = "n1") {
    return binder.bind(fmt::format(
        R"({{"PodName":"pod-{0}","PodNamespace":"team","PodUID":"{0}","Node":"{1}"}})", uid, node));
  }
  BindApi api_calls() {
    return {.bind =
                [this](const kube::Binding& binding) {
                  sent.push_back(binding);
                  return answer;
                },
            .read = [this](const std::string&, const std::string&) -> Result<json::Document> {
              if (while_read) std::exchange(while_read, {})();
              if (on_server.empty()) return Error(Errc::NotFound, "no such pod");
              return parsed(on_server);
            },
            .lead = [this]() -> Result<std::chrono::milliseconds> {
              if (lease.count() > 0) return lease;
              return Error(Errc::Denied, "this replica does not lead, other-7 does");
            }};
  }

  ClusterCache cache;
  SchedulerCounters counters;
  kube::BindResult answer{.bound = kube::BindOutcome::Done};
  std::vector<kube::Binding> sent;
  std::string on_server;
  std::function<void()> while_read;  // once
  std::chrono::milliseconds lease = seconds(14);
  Binder binder{cache, counters, api_calls()};
};

TEST_F(BinderTest, OneBindingCarriesNodeAndPlacement) {
  pend("a", "10");
  const auto done = bind("a");
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(done.body, R"({"Error":""})");
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].pod.uid, "a");
  EXPECT_EQ(sent[0].node, "n1");
  EXPECT_THAT(sent[0].annotations.at(std::string(podspec::kPlacementAnnotation)),
              HasSubstr("GPU-n1-0"));
  EXPECT_EQ(used(), 10U) << "until the watch shows it";
}

TEST_F(BinderTest, AFullNodeIsRefusedWithoutAskingTheServer) {
  pend("a", "50");
  pend("b", "50");
  EXPECT_EQ(bind("a").status, 200);
  const auto refused = bind("b");
  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.body, HasSubstr("pod-b"));
  EXPECT_EQ(sent.size(), 1U);
}

TEST_F(BinderTest, WhatTheServerRefusesIsFreeAgain) {
  pend("a", "50");
  answer = {.bound = kube::BindOutcome::Deleting, .text = "the pod is being deleted"};
  EXPECT_EQ(bind("a").status, 500);
  EXPECT_EQ(used(), 0U);
}

TEST_F(BinderTest, ABindingWithoutAnAnswerKeepsItsCardUntilThePodIsSeen) {
  pend("a", "50");
  answer = {.bound = kube::BindOutcome::Unknown, .text = "no answer"};
  EXPECT_EQ(bind("a").status, 500);
  EXPECT_EQ(used(), 50U);
  on_server =
      pod_text({.uid = "a", .gpu_mem = "50", .node = "n1", .placement = on_card("GPU-n1-0", 50)});
  binder.reconcile(std::chrono::steady_clock::now() + seconds(5));
  EXPECT_EQ(used(), 50U);
  EXPECT_TRUE(cache.assumed_pods().empty()) << "it is a pod like others now";
}

TEST_F(BinderTest, ABindingThatNeverCameThroughIsFreeAfterAMinute) {
  pend("a", "50");
  answer = {.bound = kube::BindOutcome::Unknown};
  EXPECT_EQ(bind("a").status, 500);
  on_server = pod_text({.uid = "a", .gpu_mem = "50"});
  binder.reconcile(std::chrono::steady_clock::now() + seconds(20));
  EXPECT_EQ(used(), 50U);
  binder.reconcile(std::chrono::steady_clock::now() + seconds(70));
  EXPECT_EQ(used(), 0U);
}

// kube-scheduler tries again while we look at what became of the first.
TEST_F(BinderTest, ABindingThatIsSentAgainKeepsItsCard) {
  pend("a", "50");
  answer = {.bound = kube::BindOutcome::Unknown};
  EXPECT_EQ(bind("a").status, 500);
  on_server = pod_text({.uid = "a", .gpu_mem = "50"});
  while_read = [this] { EXPECT_EQ(bind("a").status, 500); };
  binder.reconcile(std::chrono::steady_clock::now() + seconds(70));
  EXPECT_EQ(sent.size(), 2U);
  EXPECT_EQ(used(), 50U) << "the second may be taken";
}

TEST_F(BinderTest, ARequestWithoutAUidIsForWhomeverHasTheName) {
  on_server = pod_text({.uid = "a", .gpu_mem = "50"});
  answer = {.bound = kube::BindOutcome::Refused};
  EXPECT_EQ(bind("").status, 500);
  EXPECT_EQ(used(), 0U);
  answer = {.bound = kube::BindOutcome::Done};
  EXPECT_EQ(bind("").status, 200);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].pod.uid, "a");
}

TEST_F(BinderTest, ABoundPodThatWentAwayUnseenIsFreeAgain) {
  pend("a", "50");
  EXPECT_EQ(bind("a").status, 200);
  binder.reconcile(std::chrono::steady_clock::now() + seconds(40));
  EXPECT_EQ(used(), 0U);
}

TEST_F(BinderTest, AFollowerBindsNothingAndNamesTheLeader) {
  pend("a", "10");
  lease = seconds(0);
  const auto refused = bind("a");
  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.body, HasSubstr("other-7"));
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(used(), 0U);
}

TEST_F(BinderTest, NothingIsSentWithALeaseThatEndsBeforeTheRequestCould) {
  pend("a", "10");
  lease = seconds(3);
  EXPECT_EQ(bind("a").status, 500);
  lease = seconds(7);  // it may reach the server late, which has as long again
  EXPECT_EQ(bind("a").status, 500);
  EXPECT_TRUE(sent.empty());
}

TEST_F(BinderTest, APodThatTheWatchHasNotShownIsRead) {
  on_server = pod_text({.uid = "a", .gpu_mem = "10"});
  EXPECT_EQ(bind("a").status, 200);
  EXPECT_EQ(used(), 10U);
}

TEST_F(BinderTest, APodOfTheSameNameWithAnotherUidIsNotBound) {
  on_server = pod_text({.uid = "successor", .gpu_mem = "10"});
  EXPECT_EQ(bind("a").status, 500);
  EXPECT_TRUE(sent.empty());
}

TEST_F(BinderTest, BindingAgainWhatIsThereIsDone) {
  on_server = pod_text({.uid = "a", .gpu_mem = "10", .node = "n1"});
  EXPECT_EQ(bind("a").status, 200);
  EXPECT_EQ(bind("a", "n2").status, 500);
  EXPECT_TRUE(sent.empty());
}

TEST_F(BinderTest, APodWithoutGpusIsBoundWithoutAPlacement) {
  on_server = pod_text({.uid = "a", .gpu_mem = ""});
  EXPECT_EQ(bind("a").status, 200);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].annotations.empty());
}

TEST_F(BinderTest, AfterStopNothingIsBound) {
  pend("a", "10");
  EXPECT_TRUE(binder.stop(seconds(1)));
  EXPECT_EQ(bind("a").status, 500);
  EXPECT_TRUE(sent.empty());
}

}  // namespace
}  // namespace gantry::scheduler
