// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/pod_group.hpp"

#include "cluster/explain/pod_steps.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using test::parsed;
using testing::HasSubstr;

std::string member(int index, const std::string& phase, const std::string& node = "",
                   const std::string& job = "train") {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ml","name":"{0}-{1}","labels":{{
      "batch.kubernetes.io/job-name":"{0}"}},"annotations":{{
      "batch.kubernetes.io/job-completion-index":"{1}"}}}},"spec":{{"nodeName":"{3}","containers":[
      {{"name":"c","resources":{{"limits":{{"nvidia.com/gpu":"1"}}}}}}]}},
      "status":{{"phase":"{2}"}}}})",
      job, index, phase, node);
}

json::Document job_with_three_of_four() {
  return parsed(R"({"items":[)" + member(0, "Running", "a") + "," + member(1, "Running", "a") +
                "," + member(2, "Running", "a") + "," + member(3, "Pending") + "," +
                member(9, "Succeeded", "a") + "," + member(0, "Pending", "", "other") + "]}");
}

Step step_for(const std::string& pod) {
  const auto document = parsed(pod);
  const auto group = group_of(document.root());
  EXPECT_TRUE(group);
  GroupState state;
  count_group(state, *group, job_with_three_of_four().root());
  return group_step(document.root(), *group, state).value_or(Step{});
}

TEST(PodGroup, APodThatWaitsHoldsUpItsJob) {
  const auto step = step_for(member(3, "Pending"));
  EXPECT_EQ(step.read, "Job ml/train: 3 of 4 pods run, 1 waits for a node");
  EXPECT_THAT(step.cause, HasSubstr("this pod holds up Job ml/train"));
}

TEST(PodGroup, ARunningChiefNamesThePodItWaitsFor) {
  const auto step = step_for(member(0, "Running", "a"));
  EXPECT_EQ(step.verdict, StepStatus::Warning);
  EXPECT_EQ(step.cause, "ml/train-3 waits for a node and holds up Job ml/train");
  EXPECT_EQ(step.remedy, "gantry why pod ml/train-3");
}

TEST(PodGroup, AJobThatRunsIsInOrder) {
  const auto pod = parsed(member(0, "Running", "a"));
  GroupState state;
  count_group(
      state, *group_of(pod.root()),
      parsed(R"({"items":[)" + member(0, "Running", "a") + "," + member(1, "Running", "a") + "]}")
          .root());
  EXPECT_EQ(state.running, 2U);
  EXPECT_FALSE(group_step(pod.root(), *group_of(pod.root()), state));
}

TEST(PodGroup, KnowsTheLabelsOfOperators) {
  const auto kind = [](const std::string& labels, const std::string& more = "") {
    const auto pod = parsed(R"({"metadata":{"labels":{)" + labels + "}" + more + "}}");
    const auto group = group_of(pod.root());
    return group ? group->kind : "none";
  };
  EXPECT_EQ(kind(R"("jobset.sigs.k8s.io/jobset-name":"x","batch.kubernetes.io/job-name":"y")"),
            "JobSet");
  EXPECT_EQ(kind(R"("ray.io/cluster":"x")"), "RayCluster");
  EXPECT_EQ(kind(R"("training.kubeflow.org/job-name":"x")",
                 R"(,"ownerReferences":[{"kind":"PyTorchJob","controller":true}])"),
            "PyTorchJob");
  EXPECT_EQ(kind(R"("batch.kubernetes.io/job-name":"x")"), "none");  // no index: pods work alone
  EXPECT_EQ(kind(R"("app":"x")"), "none");
}

TEST(PodGroup, ItsOwnPodsAreNotBlamedForWhatTheyHold) {
  const auto waiting = parsed(member(3, "Pending"));
  const auto nodes = parsed(
      R"({"items":[{"metadata":{"name":"a"},"status":{"capacity":{"nvidia.com/gpu":"4"},
      "allocatable":{"nvidia.com/gpu":"4"}}}]})");
  const auto pods = parsed(R"({"items":[{"metadata":{"namespace":"ml","name":"notebook"},"spec":{
      "nodeName":"a","containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}},)" +
                           member(0, "Running", "a") + "," + member(1, "Running", "a") + "," +
                           member(2, "Running", "a") + "]}");
  std::vector<NodeCapacity> capacities;
  add_node_capacities(capacities, nodes.root(), waiting.root(), "nvidia.com/gpu");
  count_used(capacities, pods.root(), "nvidia.com/gpu", group_of(waiting.root()));
  const auto step = scheduling_step(waiting.root(), requested_devices(waiting.root()), capacities);
  EXPECT_THAT(step.cause,
              testing::EndsWith("ml/notebook has 1, other pods of its own group have 3"));
}

}  // namespace
}  // namespace gantry::explain
