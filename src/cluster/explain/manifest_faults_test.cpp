// SPDX-License-Identifier: Apache-2.0
// Names, amounts and places of GPU resources in a manifest: each mistake has its own sentence.
#include "cluster/explain/manifest.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::explain {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Explanation explained(const std::string& text) {
  const auto explanations = explain_manifest(text, "f");
  if (explanations.ok() && explanations->size() == 1) return explanations->front();
  return {.subject = explanations.ok() ? "several" : explanations.error().text()};
}

Explanation with_limits(std::string_view limits, std::string_view spec = "") {
  return explained(
      fmt::format("kind: Pod\nmetadata: {{name: p}}\nspec: {{{}containers: [{{name: c, "
                  "resources: {{limits: {{{}}}}}}}]}}\n",
                  spec, limits));
}

Step failed(const Explanation& explanation) {
  EXPECT_NE(explanation.first_failed(), nullptr) << to_string(explanation, false);
  return explanation.first_failed() == nullptr ? Step{} : *explanation.first_failed();
}

TEST(ManifestNames, AMisspeltNameIsAFindingWithTheRightOne) {
  for (const auto* name : {"nvidia.com/gpus", "nvidia.com/GPU", "nvida.com/gpu", "gpu"}) {
    const auto step = failed(with_limits(fmt::format("{}: 2", name)));
    EXPECT_EQ(step.id, "spec.resource-name") << name;
    EXPECT_EQ(step.cause, fmt::format("no node offers {}; did you mean nvidia.com/gpu?", name));
    EXPECT_EQ(step.remedy, "write nvidia.com/gpu: 2");
  }
  EXPECT_THAT(failed(with_limits("gantry.dev/compute: 30")).remedy,
              HasSubstr("metadata.annotations: {gantry.dev/compute: \"30\"}"));
}

TEST(ManifestNames, ANameBesideTheRightOneIsAFindingToo) {
  for (const auto* known : {"nvidia.com/gpu", "nvidia.com/a100"})
    EXPECT_EQ(failed(with_limits(fmt::format("{}: 1, nvidia.com/gpu-mem: 10", known))).id,
              "spec.resource-name");
}

TEST(ManifestNames, AnUnknownNameIsWorthALook) {
  const auto explanation = with_limits("nvidia.com/a100: 1");
  EXPECT_EQ(explanation.first_failed(), nullptr);
  ASSERT_NE(explanation.first(StepStatus::Warning), nullptr);
  EXPECT_THAT(explanation.first(StepStatus::Warning)->cause,
              HasSubstr("did you mean nvidia.com/gpu?"));
  EXPECT_THAT(explanation.first(StepStatus::Warning)->remedy,
              EndsWith("kubectl describe nodes | grep nvidia.com/a100"));
  for (const auto* name : {"nvidia.com/a100", "nvidia.com/gpu-memory"}) {
    const auto text = to_string(with_limits(fmt::format("{}: 1", name)), false);
    EXPECT_THAT(text, Not(HasSubstr("found nothing"))) << name;
    EXPECT_THAT(text, HasSubstr("No step is broken, but one is doubtful: GPU nodes offer this "
                                "resource\nPerhaps: write nvidia.com/gpu"));
  }
  EXPECT_THAT(to_string(with_limits("nvidia.com/gpu: 1"), false),
              EndsWith("\nGantry found nothing that keeps GPUs from it.\n"));
}

TEST(ManifestNames, EveryNameThatPluginsOfferIsInOrder) {
  for (const auto* name : {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb",
                           "nvidia.com/pgpu", "nvidia.com/GA100_A100_PCIE_40GB",
                           "nvidia.com/gpumem", "nvidia.com/gpucores", "aliyun.com/gpu-mem"}) {
    const auto explanation = with_limits(fmt::format("{}: 1", name));
    EXPECT_EQ(explanation.first_failed(), nullptr) << to_string(explanation, false);
    EXPECT_EQ(explanation.first(StepStatus::Warning), nullptr) << name;
  }
}

TEST(ManifestAmounts, EachHasItsOwnSentence) {
  const auto step = [](std::string_view amount) {
    return failed(with_limits(fmt::format("nvidia.com/gpu: {}", amount)));
  };
  EXPECT_EQ(step("one").cause, "nvidia.com/gpu: one is not a number");
  EXPECT_EQ(step("one").remedy, "write a whole number in digits: nvidia.com/gpu: 1");
  EXPECT_EQ(step("-1").cause, "nvidia.com/gpu: -1 is below zero");
  EXPECT_EQ(step("99999999999999999999").cause,
            "nvidia.com/gpu: 99999999999999999999 is more than any machine has");
  EXPECT_EQ(step("100000").cause, "nvidia.com/gpu: 100000 is more than any machine has");
  EXPECT_EQ(step("null").cause, "nvidia.com/gpu: null is not a number");
  EXPECT_EQ(step("true").cause, "nvidia.com/gpu: true is not a number");
  EXPECT_EQ(step("[1]").cause, "nvidia.com/gpu: [\"1\"] is not a number");
  EXPECT_THAT(step("1Gi").cause, HasSubstr("has a suffix for bytes"));
  EXPECT_THAT(step("0.5").cause, HasSubstr("half a GPU"));
  EXPECT_THAT(step("1500m").cause, HasSubstr("half a GPU"));
  EXPECT_THAT(step("0").cause, HasSubstr("the limit is 0"));
  EXPECT_EQ(failed(with_limits("nvidia.com/mig-1g.10gb: one")).id, "spec.quantity");
}

TEST(ManifestPlaces, LimitsElsewhereAreFound) {
  const auto path = [](std::string_view spec) {
    const auto step = failed(
        explained(fmt::format("kind: Deployment\nspec: {{template: {{spec: {}}}}}\n", spec)));
    EXPECT_EQ(step.id, "spec.misplaced") << spec;
    EXPECT_THAT(step.remedy, EndsWith("resources: {limits: {nvidia.com/gpu: 1}}"));
    return step.read.substr(step.read.rfind(' ') + 1);
  };
  EXPECT_EQ(path("{containers: [{name: c, limits: {nvidia.com/gpu: 1}}]}"),
            "spec.template.spec.containers[0].limits");
  EXPECT_EQ(path("{containers: [{name: c, resources: {nvidia.com/gpu: 1}}]}"),
            "spec.template.spec.containers[0].resources");
  EXPECT_EQ(path("{containers: [{name: c, resource: {limits: {nvidia.com/gpus: 1}}}]}"),
            "spec.template.spec.containers[0].resource.limits");
  EXPECT_EQ(path("{resources: {limits: {nvidia.com/gpu: 1}}, containers: [{name: c}]}"),
            "spec.template.spec.resources.limits");
  EXPECT_EQ(failed(explained("kind: Job\nspec:\n  resources: {limits: {nvidia.com/gpu: 1}}\n"
                             "  template: {spec: {containers: [{name: c}]}}\n"))
                .id,
            "spec.misplaced");
}

TEST(ManifestPlaces, LabelsAreNotLimits) {
  const auto explanation = explained(
      "kind: Deployment\nmetadata: {labels: {nvidia.com/gpu: 'true'}}\nspec:\n"
      "  selector: {matchLabels: {nvidia.com/gpu: 'true'}}\n"
      "  template:\n    metadata: {labels: {nvidia.com/gpu: 'true'}}\n    spec:\n"
      "      nodeSelector: {nvidia.com/gpu: 'true'}\n"
      "      tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"
      "      containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]\n");
  EXPECT_EQ(explanation.first_failed(), nullptr) << to_string(explanation, false);
}

TEST(ManifestPlaces, ALimitOnlyOnAnInitContainerIsAFinding) {
  const auto with_init = [](std::string_view init, std::string_view main) {
    return explained(fmt::format(
        "kind: Pod\nspec: {{initContainers: [{{name: warm, resources: {{limits: {{nvidia.com/gpu: "
        "1}}}}{}}}], containers: [{{name: c{}}}]}}\n",
        init, main));
  };
  const auto step = failed(with_init("", ""));
  EXPECT_EQ(step.id, "spec.limits");
  EXPECT_THAT(step.cause, HasSubstr("only init container warm asks for GPUs"));
  EXPECT_EQ(with_init(", restartPolicy: Always", "").first_failed(), nullptr);
  EXPECT_EQ(with_init("", ", resources: {limits: {nvidia.com/gpu: 1}}").first_failed(), nullptr);
}

TEST(ManifestPlaces, ARequestAloneIsAFinding) {
  const auto step = failed(
      explained("kind: Pod\nspec: {containers: [{name: c, resources: {requests: {nvidia.com/gpu: "
                "1}}}]}\n"));
  EXPECT_THAT(step.cause, HasSubstr("only limits count"));
}

TEST(ManifestRuntime, AKataVirtualMachineCannotUseTheHostsDriver) {
  const auto step = failed(with_limits("nvidia.com/gpu: 1", "runtimeClassName: kata-qemu, "));
  EXPECT_EQ(step.id, "spec.runtime-class");
  EXPECT_THAT(step.remedy, HasSubstr("nvidia.com/pgpu: 1"));
  for (const auto* right : {"nvidia.com/pgpu: 1", "nvidia.com/GA100_A100_PCIE_40GB: 1"})
    EXPECT_EQ(with_limits(right, "runtimeClassName: kata, ").first_failed(), nullptr) << right;
  EXPECT_EQ(with_limits("nvidia.com/gpu: 1", "runtimeClassName: nvidia, ").first_failed(), nullptr);
}

}  // namespace
}  // namespace gantry::explain
