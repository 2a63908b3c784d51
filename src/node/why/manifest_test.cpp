// SPDX-License-Identifier: Apache-2.0
#include "node/why/manifest.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using testing::HasSubstr;

TEST(WhyManifest, FindsThePodsOfEveryKindOfObject) {
  const auto chains = why_manifest(R"(# notes
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
  ASSERT_TRUE(chains.ok()) << chains.error().text();
  ASSERT_EQ(chains->size(), 3U);
  EXPECT_EQ((*chains)[0].subject, "Deployment half of notes.yaml");
  EXPECT_EQ((*chains)[0].first_broken()->id, "spec.fraction");
  EXPECT_THAT((*chains)[1].first_broken()->remedy, HasSubstr("nvidia.com/gpu: 1"));
  EXPECT_EQ((*chains)[2].first_broken(), nullptr);
}

Chain chain_of(std::string_view metadata, std::string_view spec, std::string_view limits) {
  const auto text =
      fmt::format("kind: Pod\nmetadata: {{name: p{}}}\nspec: {{{}containers: [{{name: c{}}}]}}\n",
                  metadata, spec, limits);
  const auto chains = why_manifest(text, "f");
  return chains.ok() ? chains->front() : Chain{.subject = chains.error().text()};
}
constexpr std::string_view kShare = ", resources: {limits: {aliyun.com/gpu-mem: 10}}";

TEST(WhyManifest, SaysWhatTheWebhookWouldRefuse) {
  EXPECT_EQ(chain_of("", "", kShare).first_broken(), nullptr);
  const auto placed = chain_of(", annotations: {gantry.dev/placement: x}", "", kShare);
  ASSERT_NE(placed.first_broken(), nullptr) << placed.subject;
  EXPECT_THAT(placed.first_broken()->cause, HasSubstr("written by the scheduler"));
  EXPECT_EQ(placed.first_broken()->remedy, "leave it out");
  const auto named = chain_of("", "nodeName: n1, ", kShare);
  ASSERT_NE(named.first_broken(), nullptr);
  EXPECT_THAT(named.first_broken()->remedy, HasSubstr("nodeSelector"));
  const auto privileged =
      chain_of("", "", std::string(kShare) + ", securityContext: {privileged: true}");
  ASSERT_NE(privileged.first_broken(), nullptr);
  EXPECT_THAT(privileged.first_broken()->cause, HasSubstr("privileged"));
}

TEST(WhyManifest, WholeGpusPassWithoutAWebhook) {
  const auto named = chain_of("", "nodeName: n1, ", ", resources: {limits: {nvidia.com/gpu: 1}}");
  EXPECT_EQ(named.first_broken(), nullptr);
  EXPECT_EQ(named.links.back().verdict, Verdict::Doubtful);
}

TEST(WhyManifest, SaysWhichAnnotationMayHaveBeenMeant) {
  const auto typo = chain_of(", annotations: {gantry.dev/computer: \"30\"}", "", kShare);
  EXPECT_EQ(typo.first_broken(), nullptr);
  EXPECT_THAT(typo.links.back().read, HasSubstr("gantry.dev/compute?"));
}

TEST(WhyManifest, NothingIsCountedThatNobodyWrote) {
  for (const auto* amount : {"10Gi", "-1", "lots"}) {
    const auto chain = chain_of(
        "", "", fmt::format(", resources: {{limits: {{aliyun.com/gpu-mem: {}}}}}", amount));
    ASSERT_EQ(chain.links.size(), 1U) << amount;
    EXPECT_EQ(chain.first_broken()->id, "spec.share") << amount;
  }
  const auto none = chain_of("", "", ", resources: {limits: {aliyun.com/gpu-mem: 0}}");
  ASSERT_NE(none.first_broken(), nullptr);
  EXPECT_THAT(none.first_broken()->cause, HasSubstr("gets no GPU"));
}

TEST(WhyManifest, ReadsJsonAndRefusesWhatHasNoPod) {
  const auto chains = why_manifest(
      R"({"kind":"List","items":[{"kind":"Pod","spec":{"containers":[{"name":"c"}]}}]})", "f");
  ASSERT_TRUE(chains.ok());
  EXPECT_EQ(chains->front().first_broken()->id, "spec.limits");
  EXPECT_EQ(why_manifest("kind: Service\n", "f").error().code(), Errc::NotFound);
  EXPECT_FALSE(why_manifest("a: [", "f").ok());
}

}  // namespace
}  // namespace gantry::why
