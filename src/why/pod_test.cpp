// SPDX-License-Identifier: Apache-2.0
#include "why/pod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using testing::HasSubstr;

json::Document parsed(const std::string& text) {
  auto document = json::Document::parse(text);
  EXPECT_TRUE(document.ok()) << text;
  return *std::move(document);
}

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

const auto pending = R"({"limits":{"nvidia.com/gpu":"2"}})";
const auto node_list = R"({"items":[{"metadata":{"name":"a","labels":{}},"spec":{},
  "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"}}}]})";
const std::string unscheduled =
    R"(},"status":{"conditions":[{"type":"PodScheduled","status":"False","message":"0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]})";

Link scheduled(const std::string& resources, const std::string& nodes, const std::string& pods) {
  const auto pod =
      parsed(R"({"spec":{"containers":[{"resources":)" + resources + "}]" + unscheduled + "}");
  const auto all_nodes = parsed(nodes);
  const auto all_pods = parsed(pods);
  return scheduling_link(pod.root(), wanted_by(pod.root()),
                         rooms(all_nodes.root(), all_pods.root(), pod.root(), "nvidia.com/gpu"));
}

TEST(WhyScheduling, EveryGpuInUseIsCounted) {
  const auto link = scheduled(
      pending, node_list,
      R"({"items":[{"spec":{"nodeName":"a","containers":[{"resources":{"limits":{"nvidia.com/gpu":"3"}}}]}}]})");
  EXPECT_EQ(link.verdict, Verdict::Broken);
  EXPECT_THAT(link.read, HasSubstr("a: 1 of 4 free"));
  EXPECT_THAT(link.cause, HasSubstr("in use"));
}

TEST(WhyScheduling, MoreThanAnyNodeHas) {
  const auto link = scheduled(R"({"limits":{"nvidia.com/gpu":"9"}})", node_list, R"({"items":[]})");
  EXPECT_THAT(link.cause, HasSubstr("no node has so many"));
}

TEST(WhyScheduling, NoNodeOffersAny) {
  const auto link =
      scheduled(pending, R"({"items":[{"metadata":{"name":"a"},"status":{}}]})", R"({"items":[]})");
  EXPECT_THAT(link.cause, HasSubstr("no node offers"));
}

TEST(WhyScheduling, ATaintKeepsItAway) {
  const auto link = scheduled(
      pending,
      R"({"items":[{"metadata":{"name":"a"},"spec":{"taints":[{"key":"gpu","value":"x","effect":"NoSchedule"}]},
      "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"}}}]})",
      R"({"items":[]})");
  EXPECT_THAT(link.read, HasSubstr("taint gpu=x:NoSchedule"));
  EXPECT_THAT(link.cause, HasSubstr("keep this pod away"));
}

TEST(WhyNode, WithoutAPluginTheCapacityIsZero) {
  const auto node = parsed(R"({"metadata":{"name":"a"},"status":{"capacity":{"cpu":"4"}}})");
  const auto link = broken(node_links(node.root(), {{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(link.id, "node.capacity");
  EXPECT_THAT(link.cause, HasSubstr("no device plugin is registered"));
}

TEST(WhyNode, SickGpusAreWorthALook) {
  const auto node = parsed(R"({"metadata":{"name":"a"},"status":{
    "capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"7"},
    "conditions":[{"type":"GPUsHealthy","status":"False","message":"GPU-1: XID 79"}]}})");
  const auto links = node_links(node.root(), {{"nvidia.com/gpu", 1}});
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0].verdict, Verdict::Doubtful);
  EXPECT_THAT(links[1].cause, HasSubstr("XID 79"));
}

TEST(WhyKubelet, ARefusedPodIsNeverTriedAgain) {
  const auto pod = parsed(R"({"status":{"phase":"Failed","reason":"UnexpectedAdmissionError",
    "message":"Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"}})");
  const auto link = admission_link(pod.root());
  EXPECT_EQ(link.verdict, Verdict::Broken);
  EXPECT_THAT(link.remedy, HasSubstr("delete the pod"));
}

TEST(WhyEngine, AMissingCdiDeviceIsNamed) {
  const auto pod = parsed(R"({"status":{"containerStatuses":[{"name":"c","state":{"waiting":{
    "reason":"CreateContainerError","message":"CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-1"}}}]}})");
  const auto link = engine_link(pod.root());
  EXPECT_EQ(link.verdict, Verdict::Broken);
  EXPECT_THAT(link.remedy, HasSubstr("gantry cdi refresh"));
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

}  // namespace
}  // namespace gantry::why
