// SPDX-License-Identifier: Apache-2.0
#include "cluster/explain/pod_steps.hpp"

#include "base/core/text.hpp"
#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using test::parsed;
using testing::HasSubstr;

json::Document pod_with(const std::string& resources, const std::string& more = "") {
  return parsed(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":)" +
                resources + "}]" + more + "}}");
}

Step broken_step(const std::vector<Step>& steps) {
  const Explanation explanation{.steps = steps};
  EXPECT_NE(explanation.first_failed(), nullptr);
  return explanation.first_failed() == nullptr ? Step{} : *explanation.first_failed();
}

TEST(ExplainSpec, ALimitIsARequest) {
  const auto pod = pod_with(R"({"limits":{"nvidia.com/gpu":"2"}})");
  EXPECT_EQ(requested_devices(pod.root()), (RequestedDevices{{"nvidia.com/gpu", 2}}));
  EXPECT_EQ(Explanation{.steps = spec_steps(pod.root())}.first_failed(), nullptr);
}

TEST(ExplainSpec, NoLimitNoGpu) {
  const auto step = broken_step(spec_steps(pod_with("{}").root()));
  EXPECT_EQ(step.id, "spec.limits");
  EXPECT_THAT(step.remedy, HasSubstr("nvidia.com/gpu: 1"));
}

TEST(ExplainSpec, ARequestAloneIsNone) {
  const auto step =
      broken_step(spec_steps(pod_with(R"({"requests":{"nvidia.com/gpu":"1"}})").root()));
  EXPECT_THAT(step.cause, HasSubstr("only limits"));
}

TEST(ExplainSpec, TheNameOf2017IsNamed) {
  const auto step = broken_step(
      spec_steps(pod_with(R"({"limits":{"alpha.kubernetes.io/nvidia-gpu":1}})").root()));
  EXPECT_THAT(step.cause, HasSubstr("2017"));
  EXPECT_THAT(step.remedy, HasSubstr("nvidia.com/gpu: 1"));
}

TEST(ExplainSpec, HalfAGpuCannotBeAskedFor) {
  const auto step =
      broken_step(spec_steps(pod_with(R"({"limits":{"nvidia.com/gpu":"500m"}})").root()));
  EXPECT_EQ(step.id, "spec.fraction");
}

TEST(ExplainSpec, AShareOfAGpuIsAnAskToo) {
  const auto gpushare = pod_with(R"({"limits":{"aliyun.com/gpu-mem":"5"}})");
  EXPECT_EQ(requested_devices(gpushare.root()), (RequestedDevices{{"aliyun.com/gpu-mem", 5}}));
  EXPECT_EQ(Explanation{.steps = spec_steps(gpushare.root())}.first_failed(), nullptr);
  const auto hami =
      pod_with(R"({"limits":{"nvidia.com/gpumem":"3000","nvidia.com/gpucores":"30"}})");
  EXPECT_EQ(requested_devices(hami.root()), (RequestedDevices{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(Explanation{.steps = spec_steps(hami.root())}.first_failed(), nullptr);
}

TEST(ExplainSpec, AnImpossibleShareNamesWhatToWriteInstead) {
  const auto step = broken_step(
      spec_steps(pod_with(R"({"limits":{"nvidia.com/gpu":1,"nvidia.com/gpucores":300}})").root()));
  EXPECT_EQ(step.id, "spec.share");
  EXPECT_THAT(step.remedy, HasSubstr("write at most 100"));
}

TEST(ExplainSpec, ADriverMountedByHandIsWorthALook) {
  const auto pod =
      pod_with(R"({"limits":{"nvidia.com/gpu":1}})",
               R"(,"volumes":[{"name":"lib","hostPath":{"path":"/usr/lib/nvidia-384"}}])");
  const auto steps = spec_steps(pod.root());
  EXPECT_EQ(steps.back().id, "spec.driver-mounts");
  EXPECT_EQ(steps.back().verdict, StepStatus::Warning);
}

TEST(ExplainSpec, InitContainersHandTheirsOnAndSidecarsKeepTheirs) {
  const auto pod = parsed(
      R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}],"initContainers":[
      {"resources":{"limits":{"nvidia.com/gpu":3}}},
      {"restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_EQ(requested_devices(pod.root()).at("nvidia.com/gpu"), 4);
}

TEST(ExplainSpec, GpusChosenByTheEnvironmentAreWorthALook) {
  const auto pod = parsed(
      R"({"spec":{"containers":[{"name":"c","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"0"}],
      "resources":{"limits":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_EQ(spec_steps(pod.root()).back().id, "spec.visible-devices");
}

TEST(ExplainSpec, QuantitiesAreReadAsTheApiServerWritesThem) {
  const auto values = parsed(R"(["8", 8, "1k", "1e3", "500m", "9223372036854775807", -1, null])");
  std::vector<std::int64_t> counts;
  for (const auto value : values.root()) counts.push_back(device_count(value));
  EXPECT_THAT(counts, testing::ElementsAre(8, 8, 1000, 1000, 0, 1'000'000'000, 0, 0));
}

TEST(ExplainChain, TheFirstBrokenLinkIsTheAnswer) {
  const Explanation explanation{
      .subject = "pod a/b\x1b[2J",
      .steps = {{.id = "x", .what = "X"},
                {.id = "y",
                 .what = "Y",
                 .verdict = StepStatus::Failed,
                 .cause = "because",
                 .remedy = "do"},
                {.id = "z", .what = "Z", .verdict = StepStatus::Failed, .cause = "later"}}};
  const auto text = to_string(explanation, false);
  EXPECT_THAT(text, HasSubstr("Why: because\nDo:  do\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
  EXPECT_EQ(parsed(to_json(explanation))["broken"].string(), "y");
}

TEST(ExplainChain, StrangersBytesAreJsonAllTheSameAndNoMegabytes) {
  const Explanation explanation{.subject = "pod a/b",
                                .steps = {{.id = "x",
                                           .verdict = StepStatus::Warning,
                                           .read = "\xff\x01" + std::string(1'000'000, 'a'),
                                           .remedy = "look"}}};
  const auto text = to_json(explanation);
  EXPECT_LT(text.size(), 2000U);
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(parsed(text)["look"].string(), "x");
  EXPECT_THAT(to_string(explanation, false), HasSubstr("Perhaps: look\n"));
}

}  // namespace
}  // namespace gantry::explain
