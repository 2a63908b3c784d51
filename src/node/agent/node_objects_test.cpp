// SPDX-License-Identifier: Apache-2.0
#include "node/agent/node_objects.hpp"

#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

using test::parsed;

TEST(AgentObjects, LabelsAreAppliedToTheNode) {
  const auto node = parsed(node_with_labels("n\"1", {{"nvidia.com/gpu.count", "8"}}));
  EXPECT_EQ(node["metadata"]["name"].string(), "n\"1");
  EXPECT_EQ(node["metadata"]["labels"]["nvidia.com/gpu.count"].string(), "8");
}

TEST(AgentObjects, AnXidIsAnEventOnTheNode) {
  const auto event = parsed(node_event("node1",
                                       {.gpu = {"GPU-1"},
                                        .xid = 79,
                                        .text = "the GPU fell off the bus",
                                        .remedy = "reboot",
                                        .critical = true,
                                        .at_unix_s = 1615441860},
                                       7));
  EXPECT_EQ(event["involvedObject"]["kind"].string(), "Node");
  EXPECT_EQ(event["reason"].string(), "XIDError");
  EXPECT_EQ(event["type"].string(), "Warning");
  EXPECT_EQ(event["lastTimestamp"].string(), "2021-03-11T05:51:00Z");
  EXPECT_EQ(event["message"].string(), "GPU-1: the GPU fell off the bus (remedy: reboot)");
}

TEST(AgentObjects, TheConditionSaysWhichGpuAndWhatHelps) {
  const auto sick = parsed(
      health_condition({{.gpu = {"GPU-1"}},
                        {.gpu = {"GPU-2"}, .usable = false, .cause = "XID 79", .remedy = "reboot"}},
                       1615441860, 1615441800));
  const auto condition = sick["status"]["conditions"].element(0);
  EXPECT_EQ(condition["status"].string(), "False");
  EXPECT_EQ(condition["message"].string(), "GPU-2: XID 79 (remedy: reboot)");
  EXPECT_EQ(condition["lastTransitionTime"].string(), "2021-03-11T05:50:00Z");
  const model::DeviceHealth gone{.gpu = {"GPU-1"}, .usable = false, .cause = "no driver"};
  EXPECT_EQ(parsed(health_condition({gone, gone}, 1, 1))["status"]["conditions"]
                .element(0)["message"]
                .string(),
            "all 2 GPUs: no driver");
  const auto well = parsed(health_condition({{.gpu = {"GPU-1"}}}, 1, 1));
  EXPECT_EQ(well["status"]["conditions"].element(0)["status"].string(), "True");
}

TEST(AgentObjects, ALongStoryIsCutBetweenCharacters) {
  std::vector<model::DeviceHealth> health(64,
                                          {.gpu = {"GPU-1"}, .usable = false, .cause = "zu heiß"});
  const auto condition = parsed(health_condition(health, 1, 1));
  EXPECT_LE(condition["status"]["conditions"].element(0)["message"].string()->size(), 1024U);
}

}  // namespace
}  // namespace gantry::agent
