// SPDX-License-Identifier: Apache-2.0
// Streams of many kinds: what kubectl takes is read, and each pod is judged by itself.
#include "cluster/explain/manifest.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace gantry::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Explanation> explain_all(const std::string& text) {
  auto explanations = explain_manifest(text, "f");
  EXPECT_TRUE(explanations.ok()) << explanations.error().text();
  return explanations.ok() ? *std::move(explanations) : std::vector<Explanation>();
}

std::string file(const std::string& path) {
  std::ifstream stream(test::source_dir() + "/" + path);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

void expect_infrastructure(const std::string& text) {
  const auto explanations = explain_all(text);
  EXPECT_FALSE(explanations.empty());
  for (const auto& explanation : explanations) {
    EXPECT_EQ(explanation.first_failed(), nullptr) << to_string(explanation, false);
    EXPECT_EQ(explanation.steps.front().id, "spec.infrastructure") << explanation.subject;
  }
}

TEST(ManifestInfrastructure, NeedsNoGpu) {
  for (const auto* path :
       {"tests/cluster/manifests/device-plugin.yaml", "deploy/kubernetes/daemonset.yaml",
        "deploy/sharing-base/device-plugin-ds.yaml", "deploy/sharing-base/extender.yaml",
        "deploy/hami/scheduler-patch.yaml", "deploy/driver/daemonset.yaml"})
    expect_infrastructure(file(path));
}

TEST(ManifestInfrastructure, ANotesTextWithDotsForWhatItLeavesOutIsRead) {
  expect_infrastructure(R"(
apiVersion: apps/v1
kind: DaemonSet
metadata:
  ......
spec:
  template:
    spec:
      volumes:
        ......
      containers:
      - image: "lxyustc.registrydomain.com:5000/nvidia-plugin:promethues"
        command: ["/usr/bin/nvidia-gpu-device-plugin", "-logtostderr"]
        name: nvidia-gpu-device-plugin
        resources:
         ......
)");
  expect_infrastructure(R"(
kind: DaemonSet
spec: {template: {spec: {
  initContainers: [{name: nvidia-driver-installer, image: ubuntu-nvidia-install}],
  containers: [{name: pause, image: pause}]}}}
)");
}

TEST(ManifestInfrastructure, AWorkloadBesideItIsJudgedByItself) {
  const auto explanations = explain_all(file("deploy/kubernetes/daemonset.yaml") +
                                        "---\nkind: Pod\nspec: {containers: [{name: c}]}\n");
  ASSERT_EQ(explanations.size(), 2U);
  EXPECT_EQ(explanations[0].first_failed(), nullptr);
  ASSERT_NE(explanations[1].first_failed(), nullptr);
  EXPECT_EQ(explanations[1].first_failed()->id, "spec.limits");
}

TEST(ManifestInfrastructure, ADriverMountedIntoAJobMakesItNoInfrastructure) {
  const auto explanations = explain_all(
      "kind: Job\nspec: {template: {spec: {containers: [{name: c}], volumes: [{name: v, hostPath: "
      "{path: /usr/lib/nvidia-384}}]}}}\n");
  ASSERT_NE(explanations.front().first_failed(), nullptr);
}

TEST(ManifestInfrastructure, AMisspeltLimitIsStillAFinding) {
  const auto explanations = explain_all(
      "kind: DaemonSet\nspec: {template: {spec: {containers: [{name: c, resources: {limits: "
      "{nvidia.com/gpus: 1}}}], volumes: [{name: v, hostPath: {path: /dev}}]}}}\n");
  ASSERT_NE(explanations.front().first_failed(), nullptr);
  EXPECT_EQ(explanations.front().first_failed()->id, "spec.resource-name");
}

std::vector<std::string> subjects(const std::vector<Explanation>& explanations) {
  std::vector<std::string> all;
  for (const auto& explanation : explanations) all.push_back(explanation.subject);
  return all;
}

TEST(ManifestKinds, EveryPodTemplateIsLookedInto) {
  constexpr const char* kHalf =
      "{spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 0.5}}}]}}";
  for (const auto* text : {
           "kind: TFJob\nspec: {{tfReplicaSpecs: {{Worker: {{replicas: 3, template: {}}}}}}}\n",
           "kind: TfJob\nspec: {{replicaSpecs: [{{replicas: 1, tfReplicaType: MASTER, template: "
           "{}}}]}}\n",
           "kind: PyTorchJob\nspec: {{pytorchReplicaSpecs: {{Master: {{template: {}}}}}}}\n",
           "kind: MPIJob\nspec: {{mpiReplicaSpecs: {{Worker: {{template: {}}}}}}}\n",
           "kind: JobSet\nspec: {{replicatedJobs: [{{name: w, template: {{spec: {{template: "
           "{}}}}}}}]}}\n",
           "kind: RayCluster\nspec: {{workerGroupSpecs: [{{template: {}}}]}}\n",
           "kind: RayJob\nspec: {{rayClusterSpec: {{headGroupSpec: {{template: {}}}}}}}\n",
           "kind: Job\napiVersion: batch.volcano.sh/v1alpha1\nspec: {{tasks: [{{template: "
           "{}}}]}}\n",
           "kind: LeaderWorkerSet\nspec: {{leaderWorkerTemplate: {{workerTemplate: {}}}}}\n",
           "kind: PodTemplate\ntemplate: {}\n",
           "kind: Invented\nspec: {{a: [[{{b: {}}}]]}}\n",
       }) {
    const auto explanations = explain_all(fmt::format(fmt::runtime(text), kHalf));
    ASSERT_EQ(explanations.size(), 1U) << text;
    ASSERT_NE(explanations.front().first_failed(), nullptr) << text;
    EXPECT_EQ(explanations.front().first_failed()->id, "spec.fraction") << text;
  }
}

TEST(ManifestKinds, SpecsWithoutATemplateAreLookedIntoToo) {
  for (const auto* text :
       {"kind: InferenceService\nspec: {predictor: {containers: [{name: c, resources: {limits: "
        "{nvidia.com/gpus: 1}}}]}}\n",
        "kind: Workflow\nspec: {templates: [{name: train, container: {image: x, resources: "
        "{limits: {nvidia.com/gpus: 1}}}}]}\n"}) {
    const auto explanations = explain_all(text);
    ASSERT_EQ(explanations.size(), 1U) << text;
    ASSERT_NE(explanations.front().first_failed(), nullptr) << text;
  }
}

constexpr const char* kRay = R"(kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: head, image: rayproject/ray}]}}}
  workerGroupSpecs:
  - template: {spec: {containers: [{name: w, image: rayproject/ray, resources: {limits: {nvidia.com/gpu: 1}}}]}}
)";

TEST(ManifestKinds, AHeadWithoutAGpuBesideWorkersWithOneIsInOrder) {
  const auto explanations = explain_all(kRay);
  EXPECT_THAT(subjects(explanations),
              ElementsAre("RayCluster ray (spec.headGroupSpec.template) of f",
                          "RayCluster ray (spec.workerGroupSpecs[0].template) of f"));
  for (const auto& explanation : explanations) {
    EXPECT_EQ(explanation.first_failed(), nullptr) << to_string(explanation, false);
    EXPECT_EQ(explanation.first(StepStatus::Warning), nullptr) << to_string(explanation, false);
  }
}

TEST(ManifestKinds, APodThatLooksLikeGpuWorkBesideOthersIsWorthALook) {
  auto text = std::string(kRay);
  text.replace(text.find("rayproject/ray"), 14, "rayproject/ray-gpu");
  const auto explanations = explain_all(text);
  EXPECT_EQ(explanations[0].first_failed(), nullptr);
  EXPECT_NE(explanations[0].first(StepStatus::Warning), nullptr);
}

TEST(ManifestStreams, ACrdIsReadOver) {
  std::string schema = "{type: object}";
  for (int depth = 0; depth < 45; ++depth)
    schema = fmt::format("{{properties: {{containers: {}}}}}", schema);
  const auto explanations = explain_all(fmt::format(
      "kind: CustomResourceDefinition\nspec: {{versions: [{{schema: {}}}]}}\n---\nkind: Pod\n"
      "spec: {{containers: [{{name: c, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}\n",
      schema));
  ASSERT_EQ(explanations.size(), 1U);
  EXPECT_EQ(explanations.front().first_failed(), nullptr);
}

TEST(ManifestStreams, AnchorsAndMergeKeysStandForTheirValues) {
  const auto explanations = explain_all(R"(kind: Pod
metadata: {name: p}
x-gpu: &gpu {limits: {nvidia.com/gpu: 0.5, cpu: 1}}
x-main: &main {name: main, image: a, resources: *gpu}
spec:
  containers:
  - <<: *main
    image: b
---
kind: Pod
spec:
  containers:
  - &one {name: one, resources: {limits: &limits {nvidia.com/gpu: 1}}}
  - <<: [*one, {name: never}]
    name: two
    resources: {limits: {<<: *limits, nvidia.com/gpu: 2}}
)");
  ASSERT_EQ(explanations.size(), 2U);
  ASSERT_NE(explanations[0].first_failed(), nullptr);
  EXPECT_EQ(explanations[0].first_failed()->id, "spec.fraction");
  EXPECT_EQ(explanations[1].steps.front().read, "nvidia.com/gpu: 3");
}

TEST(ManifestStreams, ABombOfAliasesIsRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i)
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  EXPECT_THAT(explain_manifest(bomb, "f").error().text(), HasSubstr("more than 400000 values"));
}

TEST(ManifestStreams, ListsAndJsonWithTabsAreRead) {
  const auto explanations = explain_all(
      "{\n\t\"kind\": \"PodList\",\n\t\"items\": [\n\t\t{\"kind\": \"Pod\", \"spec\": "
      "{\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\": {\"nvidia.com/gpu\": 1}}}]}"
      "}\n\t]\n}\n");
  ASSERT_EQ(explanations.size(), 1U);
  EXPECT_EQ(explanations.front().first_failed(), nullptr);
}

TEST(ManifestStreams, ErrorsNameTheLineOfTheFile) {
  EXPECT_THAT(explain_manifest("kind: Pod\n---\nkind: Pod\nspec:\n\tcontainers: []\n", "f.yaml")
                  .error()
                  .text(),
              HasSubstr("f.yaml:5: the line is indented with a tab"));
  EXPECT_THAT(explain_manifest("kind: Pod\nspec: {{ .Values.spec }}\n", "f").error().text(),
              HasSubstr("{{ is a template"));
}

TEST(ManifestStreams, OtherWaysToAskAreNotCalledBroken) {
  for (const auto* spec :
       {"resourceClaims: [{name: gpu, resourceClaimTemplateName: one}], containers: [{name: c}]",
        "containers: [{name: c, resources: {limits: {amd.com/gpu: 1}}}]"}) {
    const auto explanations = explain_all(fmt::format("kind: Pod\nspec: {{{}}}\n", spec));
    EXPECT_EQ(explanations.front().first_failed(), nullptr) << spec;
    EXPECT_EQ(explanations.front().steps.front().verdict, StepStatus::Unknown) << spec;
  }
}

TEST(ManifestStreams, TooManyPodsAreRefused) {
  std::string many = "kind: List\nitems:\n";
  for (int i = 0; i < 1025; ++i) many += "- {kind: Pod, spec: {containers: [{name: c}]}}\n";
  EXPECT_THAT(explain_manifest(many, "f").error().text(), HasSubstr("more than 1024 pods"));
}

}  // namespace
}  // namespace gantry::explain
