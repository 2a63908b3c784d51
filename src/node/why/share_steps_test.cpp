// SPDX-License-Identifier: Apache-2.0
#include "node/why/share_steps.hpp"

#include "container/grants/grants.hpp"
#include "support/parsed_json.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using test::parsed;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1024;

json::Document pod_with(const std::string& limits, const std::string& annotations = "") {
  return parsed(fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"default","uid":"u","annotations":{{{}}}}},
      "spec":{{"nodeName":"a","containers":[{{"name":"c","resources":{{"limits":{{{}}}}}}}]}},
      "status":{{"phase":"Pending","conditions":[{{"type":"PodScheduled","status":"False",
      "message":"0/1 nodes are available"}}]}}}})",
      annotations, limits));
}

json::Document gib(int units) {
  return pod_with(fmt::format(R"("aliyun.com/gpu-mem":"{}")", units));
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

TEST(WhyShare, WhatIsAskedIsSaidInWords) {
  const auto gpushare = gib(5);
  EXPECT_EQ(request_step(podspec::parse_request(gpushare.root())).read,
            "c: 5 of aliyun.com/gpu-mem");
  const auto hami =
      pod_with(R"("nvidia.com/gpu":"2","nvidia.com/gpumem":"3000","nvidia.com/gpucores":"30")");
  EXPECT_EQ(request_step(podspec::parse_request(hami.root())).read,
            "c: 3000 MiB of each of 2 GPUs, 30 % of the time");
}

TEST(WhyShare, ABadAskIsACauseAndWhatToWriteInstead) {
  const auto pod = pod_with(R"("aliyun.com/gpu-mem":"5","nvidia.com/gpu":"1")");
  const auto step = request_step(podspec::parse_request(pod.root()));
  EXPECT_EQ(step.verdict, StepStatus::Failed);
  EXPECT_THAT(step.cause, HasSubstr("aliyun.com/gpu-mem"));
  EXPECT_THAT(step.remedy, HasSubstr("write"));
}

TEST(WhyShare, AFullCardIsShownWithWhoHoldsIt) {
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

TEST(WhyShare, ABarredCardIsShownWithTheConfigMapThatBarsIt) {
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

TEST(WhyShare, APodThatOthersGoForHasToWait) {
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

TEST(WhyShare, WhoHoldsMostIsNamedFirstAndEqualOnesByName) {
  const auto pod = gib(5);
  auto full = node_fit(placement::Refusal::Memory);
  full.view.cards[0].tenants = {
      {.pod = {.uid = "1", .name_space = "ml", .name = "b"}, .mib = 4 * kGiB},
      {.pod = {.uid = "2", .name_space = "ml", .name = "a"}, .mib = 4 * kGiB},
      {.pod = {.uid = "3", .name_space = "ml", .name = "c"}, .mib = 5 * kGiB}};
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), {full});
  EXPECT_THAT(steps[1].read, HasSubstr("(ml/c has 5 GiB, ml/a has 4 GiB, ml/b has 4 GiB)"));
}

TEST(WhyShare, WhatNoCardIsLargeEnoughForNeedsASmallerAsk) {
  const auto pod = gib(50);
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::TooBig)});
  EXPECT_THAT(steps[0].remedy, HasSubstr("the largest has 15 GiB"));
}

TEST(WhyShare, ATaintOnTheNodeThatHasRoomIsTheCause) {
  const auto pod = gib(1);
  auto kept = node_fit(placement::Refusal::None);
  kept.refuses = "taint x=y:NoSchedule";
  kept.remedy = "add to the pod: tolerations";
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::Memory), kept});
  EXPECT_THAT(steps[0].cause, HasSubstr("a has room but does not accept this pod: taint x=y"));
  EXPECT_EQ(steps[0].remedy, kept.remedy);
}

TEST(WhyShare, RoomThatTheSchedulerDoesNotTakeIsAQuestionToTheScheduler) {
  const auto pod = gib(1);
  const auto steps =
      share_scheduling_steps(pod.root(), ask_in(pod), {node_fit(placement::Refusal::None)});
  EXPECT_THAT(steps[0].cause, HasSubstr("a has room; the scheduler says: 0/1 nodes"));
  EXPECT_EQ(steps[1].verdict, StepStatus::Ok);
}

TEST(WhyShare, WithoutASharedGpuItIsSaidHowToHaveOne) {
  const auto pod = gib(1);
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), {NodeFit{}});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_THAT(steps[0].remedy, HasSubstr("gpushare=true"));
}

TEST(WhyShare, WhatOthersLeavingWouldMendIsSaidBeforeWhatNothingMends) {
  const auto pod = gib(5);
  const auto steps = share_scheduling_steps(
      pod.root(), ask_in(pod),
      {node_fit(placement::Refusal::TooBig), node_fit(placement::Refusal::Memory)});
  EXPECT_THAT(steps[0].cause,
              HasSubstr("a: " + placement::describe(placement::Refusal::Memory, ask_in(pod))));
}

TEST(WhyShare, OfManyNodesAFewAreShown) {
  const auto pod = gib(5);
  const std::vector<NodeFit> many(20, node_fit(placement::Refusal::Memory));
  const auto steps = share_scheduling_steps(pod.root(), ask_in(pod), many);
  EXPECT_EQ(steps.size(), 10U);
  EXPECT_EQ(steps.back().what, "And 12 more nodes");
}

TEST(WhyShare, APlacementNamesItsGpu) {
  const auto view = node_fit(placement::Refusal::None).view;
  const auto placed = pod_with(R"("aliyun.com/gpu-mem":"5")",
                               R"("ALIYUN_COM_GPU_MEM_IDX":"0","ALIYUN_COM_GPU_MEM_POD":"5",
                               "ALIYUN_COM_GPU_MEM_DEV":"15","ALIYUN_COM_GPU_MEM_ASSIGNED":"true",
                               "ALIYUN_COM_GPU_MEM_ASSUME_TIME":"1")");
  const auto step = placement_step(placed.root(), ask_in(placed), view);
  EXPECT_EQ(step.verdict, StepStatus::Ok);
  EXPECT_EQ(step.read, "c: GPU0 (GPU-0) 5120 MiB");
  const auto bare = gib(5);
  EXPECT_EQ(placement_step(bare.root(), ask_in(bare), view).verdict, StepStatus::Warning);
  const auto wrong = pod_with(R"("aliyun.com/gpu-mem":"5")", R"("gantry.dev/placement":"{")");
  EXPECT_EQ(placement_step(wrong.root(), ask_in(wrong), view).verdict, StepStatus::Failed);
}

TEST(WhyShare, AShareShowsWhatIsUsedOfIt) {
  daemon::ShareState state;
  state.gpus = {{.uuid = {"GPU-0"},
                 .memory_limit = 10 * kGiB << 20U,
                 .memory_held = 1 * kGiB << 20U,
                 .memory_used = 2 * kGiB << 20U,
                 .used = 0.25}};
  state.processes.resize(1);
  auto step = share_state_step("c", "slot-1", &state);
  EXPECT_EQ(step.verdict, StepStatus::Ok);
  EXPECT_EQ(step.read, "2048 of 10240 MiB and 25 % of the time of GPU-0 in use by 1 process");
  state.gpus[0].memory_limit = UINT64_MAX;
  state.processes.resize(2);
  step = share_state_step("c", "slot-1", &state);
  EXPECT_EQ(step.read, "2048 MiB and 25 % of the time of GPU-0 in use by 2 processes");
}

TEST(WhyShare, AShareThatRefusedAnAllocationIsWorthALook) {
  daemon::ShareState state{.refused = 2};
  const auto step = share_state_step("c", "slot-1", &state);
  EXPECT_EQ(step.verdict, StepStatus::Warning);
  EXPECT_THAT(step.cause, HasSubstr("2 allocations did not fit"));
}

// A node on which this pod was given a share, and no share daemon runs.
TEST(WhyShare, AContainerWhoseShareIsGoneIsBroken) {
  test::Tree node;
  const auto pod = gib(5);
  EXPECT_TRUE(share_state_steps(node.host(), pod.root()).empty());
  const model::Grant grant{.pod = "p", .share = model::GrantShare{.name = "slot-1"}};
  ASSERT_TRUE(grants::write(node.host(), "another", "c", grant).ok());
  EXPECT_TRUE(share_state_steps(node.host(), pod.root()).empty());
  ASSERT_TRUE(grants::write(node.host(), "u", "c", grant).ok());
  const auto steps = share_state_steps(node.host(), pod.root());
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].verdict, StepStatus::Failed);
  EXPECT_EQ(steps[0].read, "there is no share slot-1");
}

}  // namespace
}  // namespace gantry::why
