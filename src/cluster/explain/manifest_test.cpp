// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/manifest.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using testing::HasSubstr;

TEST(ExplainManifest, FindsThePodsOfEveryKindOfObject) {
  const auto explanations = explain_manifest(R"(# notes
apiVersion: v1
kind: Service
metadata: {name: page}
spec: {type: NodePort}
---
kind: Deployment
metadata: {name: half}
spec:
  template:
    spec:
      containers:
      - name: main
        resources: {limits: {nvidia.com/gpu: 0.5}}
---
kind: CronJob
metadata: {name: old}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}}]}}}}}
---
kind: Pod
metadata: {name: right}
spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}
)",
                                             "notes.yaml");
  ASSERT_TRUE(explanations.ok()) << explanations.error().text();
  ASSERT_EQ(explanations->size(), 3U);
  EXPECT_EQ((*explanations)[0].subject, "Deployment half of notes.yaml");
  EXPECT_EQ((*explanations)[0].first_failed()->id, "spec.fraction");
  EXPECT_THAT((*explanations)[1].first_failed()->remedy, HasSubstr("nvidia.com/gpu: 1"));
  EXPECT_EQ((*explanations)[2].first_failed(), nullptr);
}

Explanation explanation_of(std::string_view metadata, std::string_view spec,
                           std::string_view limits) {
  const auto text =
      fmt::format("kind: Pod\nmetadata: {{name: p{}}}\nspec: {{{}containers: [{{name: c{}}}]}}\n",
                  metadata, spec, limits);
  const auto explanations = explain_manifest(text, "f");
  return explanations.ok() ? explanations->front()
                           : Explanation{.subject = explanations.error().text()};
}
constexpr std::string_view kShare = ", resources: {limits: {aliyun.com/gpu-mem: 10}}";

TEST(ExplainManifest, SaysWhatTheWebhookWouldRefuse) {
  EXPECT_EQ(explanation_of("", "", kShare).first_failed(), nullptr);
  const auto placed = explanation_of(", annotations: {gantry.dev/placement: x}", "", kShare);
  ASSERT_NE(placed.first_failed(), nullptr) << placed.subject;
  EXPECT_THAT(placed.first_failed()->cause, HasSubstr("written by the scheduler"));
  EXPECT_EQ(placed.first_failed()->remedy, "leave it out");
  const auto named = explanation_of("", "nodeName: n1, ", kShare);
  ASSERT_NE(named.first_failed(), nullptr);
  EXPECT_EQ(named.first_failed()->cause,
            "spec.nodeName bypasses the scheduler, which assigns the GPUs");
  EXPECT_EQ(named.first_failed()->remedy, "write nodeSelector: {kubernetes.io/hostname: n1}");
  const auto privileged =
      explanation_of("", "", std::string(kShare) + ", securityContext: {privileged: true}");
  ASSERT_NE(privileged.first_failed(), nullptr);
  EXPECT_THAT(privileged.first_failed()->cause, HasSubstr("privileged"));
  EXPECT_THAT(privileged.first_failed()->remedy,
              testing::StartsWith("remove securityContext.privileged"));
}

TEST(ExplainManifest, WholeGpusPassWithoutAWebhook) {
  const auto named =
      explanation_of("", "nodeName: n1, ", ", resources: {limits: {nvidia.com/gpu: 1}}");
  EXPECT_EQ(named.first_failed(), nullptr);
  EXPECT_EQ(named.steps.back().verdict, StepStatus::Warning);
}

TEST(ExplainManifest, SaysWhichAnnotationMayHaveBeenMeant) {
  const auto typo = explanation_of(", annotations: {gantry.dev/computer: \"30\"}", "", kShare);
  EXPECT_EQ(typo.first_failed(), nullptr);
  EXPECT_THAT(typo.steps.back().read, HasSubstr("gantry.dev/compute?"));
}

TEST(ExplainManifest, CountsOnlyRequestsThatAreWritten) {
  for (const auto* amount : {"10Gi", "-1", "lots"}) {
    const auto explanation = explanation_of(
        "", "", fmt::format(", resources: {{limits: {{aliyun.com/gpu-mem: {}}}}}", amount));
    ASSERT_EQ(explanation.steps.size(), 1U) << amount;
    EXPECT_EQ(explanation.first_failed()->id, "spec.share") << amount;
  }
  const auto none = explanation_of("", "", ", resources: {limits: {aliyun.com/gpu-mem: 0}}");
  ASSERT_NE(none.first_failed(), nullptr);
  EXPECT_THAT(none.first_failed()->cause, HasSubstr("gets no GPU"));
}

TEST(ExplainManifest, ReadsJsonAndRefusesWhatHasNoPod) {
  const auto explanations = explain_manifest(
      R"({"kind":"List","items":[{"kind":"Pod","spec":{"containers":[{"name":"c"}]}}]})", "f");
  ASSERT_TRUE(explanations.ok());
  EXPECT_EQ(explanations->front().first_failed()->id, "spec.limits");
  EXPECT_EQ(explain_manifest("kind: Service\n", "f").error().code(), Errc::NotFound);
  EXPECT_FALSE(explain_manifest("a: [", "f").ok());
}

}  // namespace
}  // namespace gantry::explain
