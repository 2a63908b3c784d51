// SPDX-License-Identifier: Apache-2.0
// Scheduling, the node, the kubelet and the engine, each broken in turn.
#include "cluster/explain/pod_steps.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using test::parsed;
using testing::HasSubstr;

constexpr const char* kFour =
    R"("capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"})";

std::string node_with(const std::string& spec, const std::string& status = kFour,
                      const std::string& labels = "") {
  return R"({"items":[{"metadata":{"name":"a","labels":{)" + labels + R"(}},"spec":{)" + spec +
         R"(},"status":{)" + status + "}}]}";
}

json::Document waiting_pod(int gpus, const std::string& spec = "") {
  return parsed(fmt::format(
      R"({{"spec":{{"containers":[{{"resources":{{"limits":{{"nvidia.com/gpu":"{}"}}}}}}]{}}},
      "status":{{"phase":"Pending","conditions":[{{"type":"PodScheduled","status":"False",
      "message":"0/1 nodes are available"}}]}}}})",
      gpus, spec));
}

Step scheduled(const json::Document& pod, const std::string& nodes,
               const std::string& pods = R"({"items":[]})") {
  std::vector<NodeCapacity> capacities;
  add_node_capacities(capacities, parsed(nodes).root(), pod.root(), "nvidia.com/gpu");
  count_used(capacities, parsed(pods).root(), "nvidia.com/gpu");
  auto step = scheduling_step(pod.root(), requested_devices(pod.root()), capacities);
  EXPECT_EQ(step.verdict, StepStatus::Failed);
  EXPECT_FALSE(step.remedy.empty());
  return step;
}

TEST(ExplainScheduling, EveryGpuInUseIsCountedAndItsHolderNamed) {
  const auto step =
      scheduled(waiting_pod(2), node_with(""),
                R"({"items":[{"metadata":{"namespace":"ml","name":"train"},"spec":{"nodeName":"a",
      "containers":[{"resources":{"limits":{"nvidia.com/gpu":"3"}}}]}},
      {"metadata":{"name":"old"},"status":{"phase":"Succeeded"},"spec":{"nodeName":"a",
      "containers":[{"resources":{"limits":{"nvidia.com/gpu":"3"}}}]}}]})");
  EXPECT_THAT(step.read, HasSubstr("a: 1 of 4 free"));
  EXPECT_THAT(step.cause, HasSubstr("do not have enough free"));
  EXPECT_THAT(step.cause, HasSubstr("ml/train has 3"));
}

TEST(ExplainScheduling, MoreThanAnyNodeHas) {
  EXPECT_THAT(scheduled(waiting_pod(9), node_with("")).cause, HasSubstr("no node has that many"));
}

TEST(ExplainScheduling, NoNodeOffersAny) {
  EXPECT_THAT(scheduled(waiting_pod(1), node_with("", "")).cause, HasSubstr("no node offers"));
}

TEST(ExplainScheduling, ATaintKeepsItAway) {
  const auto node = node_with(R"("taints":[{"key":"gpu","value":"x","effect":"NoSchedule"}])");
  const auto step = scheduled(waiting_pod(2), node);
  EXPECT_THAT(step.read, HasSubstr("taint gpu=x:NoSchedule"));
  EXPECT_THAT(step.cause, HasSubstr("do not accept this pod"));
  EXPECT_THAT(step.remedy, HasSubstr("tolerations: [{key: gpu, operator: Exists"));
  const auto tolerant = waiting_pod(5, R"(,"tolerations":[{"key":"gpu","operator":"Exists"}])");
  EXPECT_THAT(scheduled(tolerant, node).cause, HasSubstr("no node has that many"));
}

TEST(ExplainScheduling, ASelectorFitsNoNode) {
  const auto pod = waiting_pod(1, R"(,"nodeSelector":{"gpu":"a100"})");
  const auto step = scheduled(pod, node_with("", kFour, R"("gpu":"t4")"));
  EXPECT_THAT(step.cause, HasSubstr("a: no label gpu=a100"));
  EXPECT_THAT(step.remedy, HasSubstr("kubectl label node a gpu=a100"));
}

TEST(ExplainScheduling, NothingOfAPodComesIntoACommandThatAShellWouldRead) {
  const auto pod = waiting_pod(1, R"json(,"nodeSelector":{"gpu":"$(reboot)"})json");
  EXPECT_EQ(scheduled(pod, node_with("")).remedy, "change the pod's nodeSelector");
}

TEST(ExplainScheduling, AnAffinityFitsNoNode) {
  const auto affinity = [](const std::string& expression) {
    return waiting_pod(
        1, R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms":[{"matchExpressions":[)" +
               expression + "]}]}}}");
  };
  const auto node = node_with("", kFour, R"("count":"4","gpu":"t4")");
  for (const auto* wrong :
       {R"({"key":"gpu","operator":"In","values":["a100"]})",
        R"({"key":"gpu","operator":"NotIn","values":["t4"]})",
        R"({"key":"none","operator":"Exists"})", R"({"key":"gpu","operator":"DoesNotExist"})",
        R"({"key":"count","operator":"Gt","values":["4"]})",
        R"({"key":"count","operator":"Lt","values":["4"]})", R"({"key":"gpu","operator":"?"})"})
    EXPECT_THAT(scheduled(affinity(wrong), node).cause, HasSubstr("node affinity")) << wrong;
  const auto right = affinity(R"({"key":"count","operator":"Gt","values":["3"]})");
  EXPECT_THAT(scheduled(right, node).cause, HasSubstr("the scheduler says"));
}

TEST(ExplainScheduling, ACordonKeepsItAway) {
  const auto node = node_with(
      R"("unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}])");
  EXPECT_EQ(scheduled(waiting_pod(1), node).remedy, "kubectl uncordon a");
}

TEST(ExplainScheduling, UnhealthyGpusDifferFromAMissingPlugin) {
  const std::string none =
      R"("capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"0"})";
  auto step = scheduled(waiting_pod(1), node_with("", none));
  EXPECT_THAT(step.cause, HasSubstr("the device plugin that offered them is gone"));
  EXPECT_THAT(step.remedy, HasSubstr("gantry-agent"));
  step = scheduled(waiting_pod(1),
                   node_with("", none + R"(,"conditions":[{"type":"GPUsHealthy","status":"False",
                                "message":"GPU-1: XID 79"}])"));
  EXPECT_THAT(step.cause, HasSubstr("4 of 4 on a are not usable: GPU-1: XID 79"));
  EXPECT_THAT(step.remedy, HasSubstr("gantry doctor"));
}

TEST(ExplainScheduling, WhatHasNothingToDoWithGpusIsTheSchedulersWord) {
  EXPECT_THAT(scheduled(waiting_pod(1), node_with("")).cause,
              HasSubstr("the scheduler says: 0/1 nodes are available"));
}

TEST(ExplainScheduling, ManyNodesAreNotAllNamed) {
  std::string nodes;
  for (int i = 0; i < 500; ++i)
    nodes += fmt::format(R"({}{{"metadata":{{"name":"n{}"}}}})", i == 0 ? "" : ",", i);
  const auto step = scheduled(waiting_pod(1), R"({"items":[)" + nodes + "]}");
  EXPECT_LT(step.read.size(), 400U);
  EXPECT_THAT(step.read, HasSubstr("and 492 more"));
}

Step broken(const std::vector<Step>& steps) {
  const Explanation explanation{.steps = steps};
  EXPECT_NE(explanation.first_failed(), nullptr);
  return explanation.first_failed() == nullptr ? Step{} : *explanation.first_failed();
}

TEST(ExplainNode, WithoutAPluginTheCapacityIsZero) {
  const auto node = parsed(R"({"metadata":{"name":"a"},"status":{"capacity":{"cpu":"4"}}})");
  const auto step = broken(node_steps(node.root(), waiting_pod(1).root(), {{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(step.id, "node.capacity");
  EXPECT_THAT(step.cause, HasSubstr("no device plugin is registered"));
}

TEST(ExplainNode, APodThatRunsKeepsWhatItHasWhenThePluginIsGone) {
  const auto node = parsed(R"({"metadata":{"name":"a"},"status":{"capacity":{"cpu":"4"}}})");
  const auto pod = parsed(R"({"status":{"phase":"Running"}})");
  const Explanation explanation{.steps =
                                    node_steps(node.root(), pod.root(), {{"nvidia.com/gpu", 1}})};
  EXPECT_EQ(explanation.first_failed(), nullptr);
  EXPECT_EQ(explanation.first(StepStatus::Warning)->id, "node.capacity");
}

TEST(ExplainNode, AKubeletThatDoesNotAnswerStartsNothing) {
  const auto node = parsed(R"({"metadata":{"name":"a"},"status":{"conditions":[
    {"type":"Ready","status":"Unknown","message":"Kubelet stopped posting node status."}]}})");
  EXPECT_EQ(broken(node_steps(node.root(), waiting_pod(1).root(), {})).id, "node.ready");
}

TEST(ExplainNode, SickGpusAreWorthALook) {
  const auto node = parsed(R"({"metadata":{"name":"a"},"status":{
    "capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"7"},
    "conditions":[{"type":"GPUsHealthy","status":"False","message":"GPU-1: XID 79"}]}})");
  const auto steps = node_steps(node.root(), waiting_pod(1).root(), {{"nvidia.com/gpu", 1}});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].verdict, StepStatus::Warning);
  EXPECT_THAT(steps[1].cause, HasSubstr("XID 79"));
}

TEST(ExplainKubelet, ARefusedPodIsNeverTriedAgain) {
  const auto pod = parsed(R"({"status":{"phase":"Failed","reason":"UnexpectedAdmissionError",
    "message":"Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"}})");
  const auto step = admission_step(pod.root());
  EXPECT_EQ(step.verdict, StepStatus::Failed);
  EXPECT_THAT(step.remedy, HasSubstr("delete the pod"));
}

TEST(ExplainKubelet, ATopologyThatCannotBeMetIsNamed) {
  const auto pod = parsed(R"({"status":{"phase":"Failed","reason":"TopologyAffinityError",
    "message":"Resources cannot be allocated with Topology locality"}})");
  EXPECT_THAT(admission_step(pod.root()).remedy, HasSubstr("NUMA"));
}

Step engine(const std::string& reason, const std::string& message) {
  const auto pod = parsed(fmt::format(
      R"({{"status":{{"containerStatuses":[{{"name":"c","state":{{"waiting":{{
    "reason":"{}","message":"{}"}}}},"lastState":{{"terminated":{{"exitCode":3}}}}}}]}}}})",
      reason, message));
  return engine_step(pod.root(), {});
}

TEST(ExplainEngine, AMissingCdiDeviceIsNamed) {
  const auto step = engine("CreateContainerError", "unresolvable CDI devices nvidia.com/gpu=GPU-1");
  EXPECT_EQ(step.verdict, StepStatus::Failed);
  EXPECT_THAT(step.remedy, HasSubstr("gantry cdi refresh"));
}

TEST(ExplainEngine, APluginThatDoesNotAnswerIsNamed) {
  EXPECT_THAT(engine("CreateContainerConfigError", "failed device plugin PreStartContainer").remedy,
              HasSubstr("gantry-agent"));
}

TEST(ExplainEngine, AProgramThatEndsIsNotTheEnginesFault) {
  const auto step = engine("CrashLoopBackOff", "back-off 10s");
  EXPECT_EQ(step.id, "container.exit");
  EXPECT_THAT(step.cause, HasSubstr("status 3"));
}

TEST(ExplainEngine, ARuntimeThatTheEngineDoesNotKnowIsFoundInTheEvents) {
  const auto pod = parsed(R"({"status":{"phase":"Pending","containerStatuses":[
    {"state":{"waiting":{"reason":"ContainerCreating"}}}]}})");
  const auto events = parsed(R"({"items":[{"type":"Normal","reason":"Scheduled","message":"x"},
    {"type":"Warning","reason":"FailedCreatePodSandBox","message":
    "failed to get sandbox runtime: no runtime for \"nvidia\" is configured"}]})");
  const auto step = engine_step(pod.root(), events.root());
  EXPECT_THAT(step.cause, HasSubstr("RuntimeClass"));
  EXPECT_THAT(step.remedy, HasSubstr("gantry runtime configure"));
  EXPECT_EQ(engine_step(pod.root(), {}).verdict, StepStatus::Ok);
}

}  // namespace
}  // namespace gantry::explain
