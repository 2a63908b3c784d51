// SPDX-License-Identifier: Apache-2.0
// A misspelt label: the plugin's DaemonSet has no node, and no node has GPUs.
#include "cluster/explain/daemon_sets.hpp"

#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::explain {
namespace {

using test::parsed;
using testing::HasSubstr;

std::string daemon_set(const std::string& name, const std::string& spec,
                       const std::string& path = "/var/lib/kubelet/device-plugins") {
  return fmt::format(
      R"({{"metadata":{{"namespace":"kube-system","name":"{}"}},"spec":{{"template":{{"spec":{{
      "containers":[{{"name":"c","image":"x"}}],
      "volumes":[{{"name":"v","hostPath":{{"path":"{}"}}}}]{}}}}}}}}})",
      name, path, spec);
}

std::string node(const std::string& name, const std::string& labels) {
  return fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}}}})", name, labels);
}

Step explained(const std::string& sets, const std::string& nodes) {
  GpuDaemonSets all;
  const auto list = [](const std::string& items) { return parsed(R"({"items":[)" + items + "]}"); };
  all.add(list(sets).root());
  all.compare(list(nodes).root());
  Step step{.cause = "no node offers nvidia.com/gpu", .remedy = "gantry doctor"};
  all.explain(step);
  return step;
}

constexpr const char* kAffinity =
    R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms":[{"matchExpressions":[{"key":"gpu/nividia","operator":"Exists"}]}]}}})";

TEST(GpuDaemonSets, NamesTheDaemonSetAndTheLabelThatComesClose) {
  const auto step = explained(daemon_set("plugin", kAffinity),
                              node("cpu", "") + "," + node("a", R"("gpu/nvidia":"P630","os":"x")"));
  EXPECT_EQ(step.cause,
            "no node offers nvidia.com/gpu: DaemonSet kube-system/plugin runs on no node, because "
            "no node has the label that it asks for: gpu/nividia; a has gpu/nvidia=P630");
  EXPECT_EQ(step.remedy,
            "write gpu/nvidia in the DaemonSet (kubectl -n kube-system edit daemonset plugin), or: "
            "kubectl label node a gpu/nividia=P630");
}

TEST(GpuDaemonSets, ASelectorIsComparedTheSameWay) {
  const auto step =
      explained(daemon_set("p", R"(,"nodeSelector":{"gpushare":"true"})"),
                node("a", R"("gpu-share":"true")") + "," + node("b", R"("gpushare":"yes")"));
  EXPECT_THAT(step.cause, HasSubstr("asks for: gpushare=true; b has gpushare=yes"));
  EXPECT_THAT(step.remedy, HasSubstr("or: kubectl label node b gpushare=true --overwrite"));
}

TEST(GpuDaemonSets, WithoutACloseLabelTheWantedOneIsNamed) {
  const auto step = explained(daemon_set("p", R"(,"nodeSelector":{"gpu":"on"})"), node("a", ""));
  EXPECT_THAT(step.cause, testing::EndsWith("asks for: gpu=on"));
  EXPECT_THAT(step.remedy, HasSubstr("or: kubectl label node a gpu=on"));
}

TEST(GpuDaemonSets, ADaemonSetThatHasANodeIsNotBlamed) {
  const auto untouched = [](const Step& step) {
    EXPECT_EQ(step.cause, "no node offers nvidia.com/gpu");
    EXPECT_EQ(step.remedy, "gantry doctor");
  };
  untouched(explained(daemon_set("p", kAffinity),
                      node("a", R"("gpu/nvidia":"x")") + "," + node("b", R"("gpu/nividia":"x")")));
  untouched(explained(daemon_set("logs", kAffinity, "/var/log"), node("a", "")));
  untouched(explained(daemon_set("p", kAffinity), ""));
}

TEST(GpuDaemonSets, NothingOfAnObjectComesIntoACommandThatAShellWouldRead) {
  const auto step = explained(daemon_set("$(reboot)", R"json(,"nodeSelector":{"gpu":"`id`"})json"),
                              node("a;b", ""));
  EXPECT_EQ(step.remedy, "change the label in the DaemonSet");
}

}  // namespace
}  // namespace gantry::explain
