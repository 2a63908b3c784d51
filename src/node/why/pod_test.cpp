// SPDX-License-Identifier: Apache-2.0
#include "node/why/pod.hpp"

#include "base/core/text.hpp"
#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using test::parsed;
using testing::HasSubstr;

json::Document pod_with(const std::string& resources, const std::string& more = "") {
  return parsed(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":)" +
                resources + "}]" + more + "}}");
}

Link broken(const std::vector<Link>& links) {
  const Chain chain{.links = links};
  EXPECT_NE(chain.first_broken(), nullptr);
  return chain.first_broken() == nullptr ? Link{} : *chain.first_broken();
}

TEST(WhySpec, ALimitIsARequest) {
  const auto pod = pod_with(R"({"limits":{"nvidia.com/gpu":"2"}})");
  EXPECT_EQ(wanted_by(pod.root()), (Wanted{{"nvidia.com/gpu", 2}}));
  EXPECT_EQ(Chain{.links = spec_links(pod.root())}.first_broken(), nullptr);
}

TEST(WhySpec, NoLimitNoGpu) {
  const auto link = broken(spec_links(pod_with("{}").root()));
  EXPECT_EQ(link.id, "spec.limits");
  EXPECT_THAT(link.remedy, HasSubstr("nvidia.com/gpu: 1"));
}

TEST(WhySpec, ARequestAloneIsNone) {
  const auto link = broken(spec_links(pod_with(R"({"requests":{"nvidia.com/gpu":"1"}})").root()));
  EXPECT_THAT(link.cause, HasSubstr("limits only"));
}

TEST(WhySpec, TheNameOf2017IsNamed) {
  const auto link =
      broken(spec_links(pod_with(R"({"limits":{"alpha.kubernetes.io/nvidia-gpu":1}})").root()));
  EXPECT_THAT(link.cause, HasSubstr("2017"));
  EXPECT_THAT(link.remedy, HasSubstr("nvidia.com/gpu: 1"));
}

TEST(WhySpec, HalfAGpuCannotBeAskedFor) {
  const auto link = broken(spec_links(pod_with(R"({"limits":{"nvidia.com/gpu":"500m"}})").root()));
  EXPECT_EQ(link.id, "spec.fraction");
}

TEST(WhySpec, AShareOfAGpuIsAnAskToo) {
  const auto gpushare = pod_with(R"({"limits":{"aliyun.com/gpu-mem":"5"}})");
  EXPECT_EQ(wanted_by(gpushare.root()), (Wanted{{"aliyun.com/gpu-mem", 5}}));
  EXPECT_EQ(Chain{.links = spec_links(gpushare.root())}.first_broken(), nullptr);
  const auto hami =
      pod_with(R"({"limits":{"nvidia.com/gpumem":"3000","nvidia.com/gpucores":"30"}})");
  EXPECT_EQ(wanted_by(hami.root()), (Wanted{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(Chain{.links = spec_links(hami.root())}.first_broken(), nullptr);
}

TEST(WhySpec, AShareThatCannotBeIsToldWhatToWriteInstead) {
  const auto link = broken(
      spec_links(pod_with(R"({"limits":{"nvidia.com/gpu":1,"nvidia.com/gpucores":300}})").root()));
  EXPECT_EQ(link.id, "spec.share");
  EXPECT_THAT(link.remedy, HasSubstr("write at most 100"));
}

TEST(WhySpec, ADriverMountedByHandIsWorthALook) {
  const auto pod =
      pod_with(R"({"limits":{"nvidia.com/gpu":1}})",
               R"(,"volumes":[{"name":"lib","hostPath":{"path":"/usr/lib/nvidia-384"}}])");
  const auto links = spec_links(pod.root());
  EXPECT_EQ(links.back().id, "spec.driver-mounts");
  EXPECT_EQ(links.back().verdict, Verdict::Doubtful);
}

TEST(WhySpec, InitContainersHandTheirsOnAndSidecarsKeepTheirs) {
  const auto pod = parsed(
      R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}],"initContainers":[
      {"resources":{"limits":{"nvidia.com/gpu":3}}},
      {"restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_EQ(wanted_by(pod.root()).at("nvidia.com/gpu"), 4);
}

TEST(WhySpec, GpusChosenByTheEnvironmentAreWorthALook) {
  const auto pod = parsed(
      R"({"spec":{"containers":[{"name":"c","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"0"}],
      "resources":{"limits":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_EQ(spec_links(pod.root()).back().id, "spec.visible-devices");
}

TEST(WhySpec, QuantitiesAreReadAsTheApiServerWritesThem) {
  const auto values = parsed(R"(["8", 8, "1k", "1e3", "500m", "9223372036854775807", -1, null])");
  std::vector<std::int64_t> counts;
  for (const auto value : values.root()) counts.push_back(count_in(value));
  EXPECT_THAT(counts, testing::ElementsAre(8, 8, 1000, 1000, 0, 1'000'000'000, 0, 0));
}

TEST(WhyChain, TheFirstBrokenLinkIsTheAnswer) {
  const Chain chain{
      .subject = "pod a/b\x1b[2J",
      .links = {
          {.id = "x", .what = "X"},
          {.id = "y", .what = "Y", .verdict = Verdict::Broken, .cause = "because", .remedy = "do"},
          {.id = "z", .what = "Z", .verdict = Verdict::Broken, .cause = "later"}}};
  const auto text = to_text(chain, false);
  EXPECT_THAT(text, HasSubstr("Why: because\nDo:  do\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
  EXPECT_EQ(parsed(to_json(chain))["broken"].string(), "y");
}

TEST(WhyChain, StrangersBytesAreJsonAllTheSameAndNoMegabytes) {
  const Chain chain{.subject = "pod a/b",
                    .links = {{.id = "x",
                               .verdict = Verdict::Doubtful,
                               .read = "\xff\x01" + std::string(1'000'000, 'a'),
                               .remedy = "look"}}};
  const auto text = to_json(chain);
  EXPECT_LT(text.size(), 2000U);
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(parsed(text)["look"].string(), "x");
  EXPECT_THAT(to_text(chain, false), HasSubstr("Perhaps: look\n"));
}

}  // namespace
}  // namespace gantry::why
