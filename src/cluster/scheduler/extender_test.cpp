// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/extender.hpp"

#include "cluster/scheduler/objects_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ExtenderTest : public ::testing::Test {
 protected:
  ExtenderTest() {
    EXPECT_TRUE(cache.set_node(node_object("small", {16}).root()).ok());
    EXPECT_TRUE(cache.set_node(node_object("large", {80, 80}).root()).ok());
    EXPECT_TRUE(cache.set_node(parsed(R"({"metadata":{"name":"bare"}})").root()).ok());
  }
  json::Document filter(const std::string& pod,
                        const std::string& names = R"(["small","large","bare","nobody"])") {
    const auto answer = extender.filter(fmt::format(R"({{"Pod":{},"NodeNames":{}}})", pod, names));
    EXPECT_EQ(answer.status, 200);
    return parsed(answer.body);
  }
  void put(const std::string& uid, const std::string& node, const std::string& card,
           std::uint64_t gib, int priority = 0) {
    EXPECT_TRUE(cache
                    .set_pod(pod_object({.uid = uid,
                                         .gpu_mem = fmt::to_string(gib),
                                         .node = node,
                                         .placement = on_card(card, gib),
                                         .priority = priority})
                                 .root(),
                             {})
                    .ok());
  }

  ClusterCache cache;
  SchedulerCounters counters;
  std::vector<InvalidRequest> bad;
  std::vector<UnschedulablePod> full;
  std::string not_ready;
  Extender extender{cache,
                    counters,
                    {.not_ready = [this] { return not_ready; },
                     .invalid_request = [this](const InvalidRequest& ask) { bad.push_back(ask); },
                     .full = [this](UnschedulablePod ask) { full.push_back(std::move(ask)); }}};
};

TEST_F(ExtenderTest, FilterLeavesTheNodesWithACardThatHasRoom) {
  const auto answer = filter(pod_text({.gpu_mem = "40"}));
  EXPECT_THAT(answer["NodeNames"].strings(), ElementsAre("large"));
  EXPECT_EQ(answer["Error"].string(), "");
  EXPECT_TRUE(answer["Nodes"].is(json::Kind::Null));
}

TEST_F(ExtenderTest, OnlyWhatOthersLeavingCouldChangeIsLeftToPreemption) {
  put("other", "small", "GPU-small-0", 10);
  const auto answer = filter(pod_text({.gpu_mem = "12"}));
  EXPECT_TRUE(answer["FailedNodes"]["small"]);
  EXPECT_TRUE(answer["FailedAndUnresolvableNodes"]["bare"]);
  EXPECT_TRUE(answer["FailedAndUnresolvableNodes"]["nobody"]);
  const auto large = filter(pod_text({.gpu_mem = "20"}));
  EXPECT_TRUE(large["FailedAndUnresolvableNodes"]["small"]) << "never had 20 GiB";
}

TEST_F(ExtenderTest, ReportsAPodThatOnlyOtherPodsKeepOut) {
  put("other", "small", "GPU-small-0", 10);
  filter(pod_text({.gpu_mem = "12"}));
  EXPECT_THAT(full, IsEmpty()) << "it fits on large";
  put("a", "large", "GPU-large-0", 70);
  put("b", "large", "GPU-large-1", 70);
  filter(pod_text({.uid = "u9", .gpu_mem = "12"}));
  ASSERT_EQ(full.size(), 1U);
  EXPECT_EQ(full[0].ask.pod.uid, "u9");
  EXPECT_THAT(full[0].nodes, ElementsAre("small", "large"));
  filter(pod_text({.gpu_mem = "200"}));
  EXPECT_EQ(full.size(), 1U) << "no card is that large";
}

TEST_F(ExtenderTest, WhoHasRoomMadeForItHearsThat) {
  put("low", "small", "GPU-small-0", 10);
  const auto ask =
      **podspec::parse_request(pod_object({.uid = "u9", .gpu_mem = "12", .priority = 9}).root());
  ASSERT_TRUE(
      cache.add_nomination(ask, {.node = "small", .victims = {{.pod = {.uid = "low"}}}}, {}).ok());
  const auto answer =
      filter(pod_text({.uid = "u9", .gpu_mem = "12", .priority = 9}), R"(["small"])");
  EXPECT_THAT(answer["FailedNodes"]["small"].string().value_or(""), HasSubstr("make room"));
}

TEST_F(ExtenderTest, NodesWithBarredCardsHaveOneReasonForAllOfThem) {
  for (const auto* name : {"unhealthy-gpu-small", "unhealthy-gpu-large"}) {
    const auto map = fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{"gpus":"0"}}}})", name);
    EXPECT_TRUE(cache.set_unhealthy_gpus(parsed(map).root()).ok());
  }
  EXPECT_THAT(filter(pod_text({.gpu_mem = "12"}))["NodeNames"].strings(), ElementsAre("large"));
  put("a", "large", "GPU-large-1", 80);
  const auto answer = filter(pod_text({.gpu_mem = "12"}));
  const std::string of_all =
      "(some are marked unhealthy by ConfigMap kube-system/unhealthy-gpu-NODE)";
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["small"].string(),
            "no GPU here with 12 GiB of memory is healthy " + of_all);
  EXPECT_EQ(answer["FailedNodes"]["large"].string(),
            "no GPU here has 12 GiB of memory free " + of_all);
}

TEST_F(ExtenderTest, AmountsAreInTheUnitOfTheNode) {
  const auto mib = R"({"metadata":{"name":"mib"},"status":{"capacity":{"aliyun.com/gpu-mem":)"
                   R"("16000","aliyun.com/gpu-count":"1"},"allocatable":{"aliyun.com/gpu-mem":)"
                   R"("16000"}}})";
  EXPECT_TRUE(cache.set_node(parsed(mib).root()).ok());
  const auto answer = filter(pod_text({.gpu_mem = "20000"}), R"(["mib","small"])");
  const auto refused = answer["FailedAndUnresolvableNodes"];
  EXPECT_THAT(refused["mib"].string().value_or(""), HasSubstr("has 20000 MiB of memory"));
  EXPECT_THAT(refused["small"].string().value_or(""), HasSubstr("has 20000 GiB of memory"));
}

TEST_F(ExtenderTest, FilterChangesNothing) {
  const auto before = cache.generation();
  filter(pod_text({.gpu_mem = "40"}));
  EXPECT_EQ(cache.generation(), before);
  EXPECT_EQ(cache.pods(), 0U);
}

TEST_F(ExtenderTest, APodThatAsksForNoGpuMayGoAnywhere) {
  EXPECT_THAT(filter(pod_text({.gpu_mem = ""}))["NodeNames"].strings(),
              ElementsAre("small", "large", "bare", "nobody"));
}

TEST_F(ExtenderTest, ABadRequestIsRefusedOnEveryNodeAndReported) {
  const auto answer = filter(pod_text({.uid = "odd", .gpu_mem = "500m"}));
  EXPECT_THAT(answer["NodeNames"].strings(), IsEmpty());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 4U);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].pod.uid, "odd");
  EXPECT_EQ(bad[0].pod.name, "pod-odd");
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["small"].string(), bad[0].sentence);
}

TEST_F(ExtenderTest, WhatIsNoRequestGetsAnErrorAndStatus200) {
  for (const std::string_view body : {"", "nonsense", "{}", R"({"Pod":null,"NodeNames":["a"]})",
                                      R"({"Pod":[],"NodeNames":null,"Nodes":null})"}) {
    const auto answer = extender.filter(body);
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(parsed(answer.body)["Error"].string(), "") << body;
  }
  EXPECT_EQ(extender.prioritize("nonsense").status, 400);
  EXPECT_EQ(extender.preempt("nonsense").status, 400);
}

TEST_F(ExtenderTest, BeforeTheStateIsReadItAnswersAnError) {
  not_ready = "still reading";
  EXPECT_EQ(filter(pod_text({}))["Error"].string(), "still reading");
  EXPECT_EQ(extender.prioritize("{}").status, 503);
  EXPECT_EQ(extender.preempt("{}").status, 503);
  EXPECT_EQ(extender.inspect().status, 503) << "no nodes would be an answer";
  EXPECT_THAT(extender.inspect("large").body, HasSubstr("still reading"));
}

TEST_F(ExtenderTest, NodeObjectsComeBackForASchedulerWithoutNames) {
  const auto answer = extender.filter(fmt::format(
      R"({{"Pod":{},"Nodes":{{"items":[{{"metadata":{{"name":"small"}}}},{{"metadata":{{"name":"large"}}}}]}}}})",
      pod_text({.gpu_mem = "40"})));
  EXPECT_THAT(answer.body, HasSubstr(R"("items":[{"metadata":{"name":"large"}}])"));
}

TEST_F(ExtenderTest, PrioritizeAnswersForEveryNodeThatItWasAskedAbout) {
  put("other", "large", "GPU-large-1", 40);
  const auto body =
      fmt::format(R"({{"Pod":{},"NodeNames":["small","large"]}})", pod_text({.gpu_mem = "8"}));
  const auto fresh = extender.prioritize(body).body;
  extender.filter(body);
  EXPECT_EQ(extender.prioritize(body).body, fresh) << "remembered is as good as computed";
  const auto scores = parsed(fresh);
  ASSERT_EQ(scores.root().size(), 2U);
  EXPECT_EQ(scores.root().element(0)["Host"].string(), "small");
  EXPECT_LE(*scores.root().element(1)["Score"].u64(), 10U);
}

TEST_F(ExtenderTest, WhatIsRememberedEndsWithTheNextChange) {
  const auto body =
      fmt::format(R"({{"Pod":{},"NodeNames":["small","large"]}})", pod_text({.gpu_mem = "8"}));
  extender.filter(body);
  put("other", "small", "GPU-small-0", 16);
  const auto scores = parsed(extender.prioritize(body).body);
  EXPECT_EQ(scores.root().element(0)["Score"].u64(), 0U) << "small is full by now";
}

TEST_F(ExtenderTest, PreemptNamesPodsWhoseEndHelps) {
  put("low", "small", "GPU-small-0", 10, 1);
  const auto answer = extender.preempt(fmt::format(
      R"({{"Pod":{},"NodeNameToMetaVictims":{{"small":{{"Pods":[],"NumPDBViolations":0}},"bare":{{"Pods":[{{"UID":"x"}}]}}}}}})",
      pod_text({.gpu_mem = "12", .priority = 100})));
  EXPECT_EQ(answer.body,
            R"({"NodeNameToMetaVictims":{"small":{"Pods":[{"UID":"low"}],"NumPDBViolations":0}}})");
}

TEST_F(ExtenderTest, InspectShowsPodsAndSaysWhichNodesItDoesNotKnow) {
  put("other", "small", "GPU-small-0", 10);
  EXPECT_THAT(extender.inspect().body, HasSubstr("pod-other"));
  EXPECT_EQ(extender.inspect("large").status, 200);
  EXPECT_EQ(extender.inspect("nobody").status, 404);
  EXPECT_THAT(extender.inspect("nobody").body, HasSubstr("\"error\""));
}

}  // namespace
}  // namespace gantry::scheduler
