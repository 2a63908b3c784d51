// SPDX-License-Identifier: Apache-2.0
#include "why/manifest.hpp"

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
