// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/share_steps.hpp"

#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using test::parsed;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1024;

json::Document share_pod_with(const std::string& limits, const std::string& annotations = "") {
  return parsed(fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"default","uid":"u","annotations":{{{}}}}},
      "spec":{{"nodeName":"a","containers":[{{"name":"c","resources":{{"limits":{{{}}}}}}}]}},
      "status":{{"phase":"Pending","conditions":[{{"type":"PodScheduled","status":"False",
      "message":"0/1 nodes are available"}}]}}}})",
      annotations, limits));
}

json::Document gib(int units) {
  return share_pod_with(fmt::format(R"("aliyun.com/gpu-mem":"{}")", units));
}

podspec::PodRequest ask_in(const json::Document& pod) {
  auto ask = podspec::parse_request(pod.root());
  EXPECT_TRUE(ask.ok() && ask->has_value());
  return ask.ok() && *ask ? **ask : podspec::PodRequest{};
}

NodeFit node_fit(placement::Refusal refusal, std::uint64_t used = 12 * kGiB) {
  NodeFit made{.fit = {.refusal = refusal}};
  made.view.facts.name = "a";
  placement::CardView card{.facts = {.uuid = {"GPU-0"}, .index = 0, .mib = 15 * kGiB},
                           .used_mib = used};
  card.tenants = {
      {.pod = {.uid = "1", .name_space = "ml", .name = "train"}, .mib = used, .cores = 30}};
  card.used_cores = 30;
  made.view.facts.cards = {card.facts};
  made.view.cards = {card};
  return made;
}

TEST(ExplainShare, WhatIsAskedIsSaidInWords) {
  const auto gpushare = gib(5);
  EXPECT_EQ(request_step(podspec::parse_request(gpushare.root())).read,
            "c: 5 of aliyun.com/gpu-mem");
  const auto hami = share_pod_with(
      R"("nvidia.com/gpu":"2","nvidia.com/gpumem":"3000","nvidia.com/gpucores":"30")");
  EXPECT_EQ(request_step(podspec::parse_request(hami.root())).read,
            "c: 3000 MiB of each of 2 GPUs, 30 % of the time");
}

TEST(ExplainShare, ABadAskIsACauseAndWhatToWriteInstead) {
  const auto pod = share_pod_with(R"("aliyun.com/gpu-mem":"5","nvidia.com/gpu":"1")");
  const auto step = request_step(podspec::parse_request(pod.root()));
  EXPECT_EQ(step.verdict, StepStatus::Failed);
  EXPECT_EQ(step.cause,
            "container \"c\" asks for aliyun.com/gpu-mem and for nvidia.com/gpu resources");
  EXPECT_EQ(step.remedy,
            "write nvidia.com/gpu with nvidia.com/gpumem, or aliyun.com/gpu-mem alone");
  const auto odd = share_pod_with(R"("aliyun.com/gpu-mem":"5")", R"("gantry.dev/compute":"a; b")");
  const auto quoted = request_step(podspec::parse_request(odd.root()));
  EXPECT_THAT(quoted.cause,
              testing::EndsWith("annotation gantry.dev/compute: \"a; b\" is not valid"))
      << "a value may contain any text";
  EXPECT_EQ(quoted.remedy, "write a whole number from 1 to 100, in quotes");
  EXPECT_THAT(request_step(Error(Errc::Invalid, "a; b")).remedy, HasSubstr("docs/scheduling.md"));
}

TEST(ExplainShare, AFullCardIsShownWithWhoHoldsIt) {
  const auto pod = gib(5);
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::Memory)});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].id, "scheduling");
  EXPECT_THAT(steps[0].cause,
              HasSubstr("a: " + placement::describe(placement::Refusal::Memory, ask_in(pod))));
  EXPECT_THAT(steps[0].remedy, HasSubstr("ask for at most 3 GiB"));
  EXPECT_THAT(steps[1].read, HasSubstr("GPU0: 3 GiB of 15 GiB free, 70 % of its time (ml/train has "
                                       "12 GiB and 30 %)"));
}

TEST(ExplainShare, ABarredCardIsShownWithTheConfigMapThatBarsIt) {
  const auto pod = gib(5);
  auto marked_unhealthy = node_fit(placement::Refusal::Unhealthy, 0);
  marked_unhealthy.fit.marked_unhealthy = true;
  marked_unhealthy.view.cards[0].facts.marked_unhealthy = true;
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), {marked_unhealthy});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_THAT(steps[0].cause, HasSubstr("(some are marked unhealthy by ConfigMap "
                                        "kube-system/unhealthy-gpu-a)"));
  EXPECT_THAT(steps[0].remedy, HasSubstr("unhealthy-gpu-NODE"));
  EXPECT_THAT(steps[1].read,
              HasSubstr("marked unhealthy by ConfigMap kube-system/unhealthy-gpu-a"));
}

TEST(ExplainShare, APodThatOthersGoForHasToWait) {
  auto text = std::string(gib(5).root().raw());
  const std::string_view status = R"("status":{)";
  ASSERT_NE(text.find(status), std::string::npos);
  text.insert(text.find(status) + status.size(), R"("nominatedNodeName":"a",)");
  const auto pod = test::parsed(text);
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::Memory)});
  EXPECT_THAT(steps[0].cause, HasSubstr("is making room for it on node a"));
  EXPECT_THAT(steps[0].remedy, HasSubstr("wait"));
}

TEST(ExplainShare, WhoHoldsMostIsNamedFirstAndEqualOnesByName) {
  const auto pod = gib(5);
  auto full = node_fit(placement::Refusal::Memory);
  full.view.cards[0].tenants = {
      {.pod = {.uid = "1", .name_space = "ml", .name = "b"}, .mib = 4 * kGiB},
      {.pod = {.uid = "2", .name_space = "ml", .name = "a"}, .mib = 4 * kGiB},
      {.pod = {.uid = "3", .name_space = "ml", .name = "c"}, .mib = 5 * kGiB}};
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), {full});
  EXPECT_THAT(steps[1].read, HasSubstr("(ml/c has 5 GiB, ml/a has 4 GiB, ml/b has 4 GiB)"));
}

TEST(ExplainShare, WhatNoCardIsLargeEnoughForNeedsASmallerAsk) {
  const auto pod = gib(50);
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::TooBig)});
  EXPECT_THAT(steps[0].remedy, HasSubstr("the largest has 15 GiB"));
}

TEST(ExplainShare, ATaintOnTheNodeThatHasRoomIsTheCause) {
  const auto pod = gib(1);
  auto kept = node_fit(placement::Refusal::None);
  kept.refuses = "taint x=y:NoSchedule";
  kept.remedy = "add to the pod: tolerations";
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::Memory), kept});
  EXPECT_THAT(steps[0].cause, HasSubstr("a has room but does not accept this pod: taint x=y"));
  EXPECT_EQ(steps[0].remedy, kept.remedy);
}

TEST(ExplainShare, RoomThatTheSchedulerDoesNotTakeIsAQuestionToTheScheduler) {
  const auto pod = gib(1);
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::None)});
  EXPECT_THAT(steps[0].cause, HasSubstr("a has room; the scheduler says: 0/1 nodes"));
  EXPECT_EQ(steps[1].verdict, StepStatus::Ok);
}

TEST(ExplainShare, WithoutASharedGpuItIsSaidHowToHaveOne) {
  const auto pod = gib(1);
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), {NodeFit{}});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_THAT(steps[0].remedy, HasSubstr("gpushare=true"));
}

TEST(ExplainShare, WhatOthersLeavingWouldMendIsSaidBeforeWhatNothingMends) {
  const auto pod = gib(5);
  const auto steps = share_scheduling_steps(
      pod.root(), ask_in(pod),
      {node_fit(placement::Refusal::TooBig), node_fit(placement::Refusal::Memory)});
  EXPECT_THAT(steps[0].cause,
              HasSubstr("a: " + placement::describe(placement::Refusal::Memory, ask_in(pod))));
}

TEST(ExplainShare, OfManyNodesAFewAreShown) {
  const auto pod = gib(5);
  const std::vector<NodeFit> many(20, node_fit(placement::Refusal::Memory));
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), many);
  EXPECT_EQ(steps.size(), 10U);
  EXPECT_EQ(steps.back().what, "And 12 more nodes");
}

TEST(ExplainShare, APlacementNamesItsGpu) {
  const auto view = node_fit(placement::Refusal::None).view;
  const auto placed = share_pod_with(R"("aliyun.com/gpu-mem":"5")",
                                     R"("ALIYUN_COM_GPU_MEM_IDX":"0","ALIYUN_COM_GPU_MEM_POD":"5",
                               "ALIYUN_COM_GPU_MEM_DEV":"15","ALIYUN_COM_GPU_MEM_ASSIGNED":"true",
                               "ALIYUN_COM_GPU_MEM_ASSUME_TIME":"1")");
  const auto step = placement_step(placed.root(), ask_in(placed), view);
  EXPECT_EQ(step.verdict, StepStatus::Ok);
  EXPECT_EQ(step.read, "c: GPU0 (GPU-0) 5120 MiB");
  const auto bare = gib(5);
  EXPECT_EQ(placement_step(bare.root(), ask_in(bare), view).verdict, StepStatus::Warning);
  const auto wrong = share_pod_with(R"("aliyun.com/gpu-mem":"5")", R"("gantry.dev/placement":"{")");
  EXPECT_EQ(placement_step(wrong.root(), ask_in(wrong), view).verdict, StepStatus::Failed);
}

}  // namespace
}  // namespace gantry::explain
