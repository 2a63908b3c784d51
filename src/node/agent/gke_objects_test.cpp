// SPDX-License-Identifier: Apache-2.0
#include "node/agent/gke_objects.hpp"

#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

using test::parsed;

TEST(GkeObjects, AnEventSaysWhichXid) {
  const auto event = parsed(gke_event("n1", 79, 1'600'000'000, 1));
  EXPECT_EQ(event["reason"].string(), "XIDError");
  EXPECT_EQ(event["message"].string(), "Caught XID error, XID=79");
  EXPECT_EQ(event["source"]["component"].string(), "nvidia-gpu-device-plugin");
  EXPECT_EQ(event["involvedObject"]["name"].string(), "n1");
}

TEST(GkeObjects, AConditionIsReadAsItWasWritten) {
  const auto node = parsed(gke_condition({48, 79}, "boot-1", 1'600'000'000, 1'600'000'000));
  const auto read = parse_gke_condition(node);
  EXPECT_EQ(read.boot_id, "boot-1");
  EXPECT_EQ(read.xids, (std::set<unsigned>{48, 79}));
  EXPECT_EQ(node["status"]["conditions"].element(0)["reason"].string(), R"({"48":true,"79":true})");
}

TEST(GkeObjects, AForeignConditionSaysNothing) {
  EXPECT_TRUE(parse_gke_condition(parsed(R"({"status":{"conditions":[
      {"type":"Ready","status":"True","reason":"x"},
      {"type":"XidCriticalError","status":"True","reason":"no object","message":"b"}]}})"))
                  .xids.empty());
  EXPECT_TRUE(parse_gke_condition(parsed("{}")).boot_id.empty());
}

TEST(GkeObjects, ADriversVersionIsTakenApart) {
  const auto node = parsed(driver_annotations("n1", "550.90.07"));
  const auto annotations = node["metadata"]["annotations"];
  EXPECT_EQ(annotations["cloud.google.com/cuda.driver-version.full"].string(), "550.90.07");
  EXPECT_EQ(annotations["cloud.google.com/cuda.driver-version.minor"].string(), "90");
  EXPECT_EQ(annotations["cloud.google.com/cuda.driver-version.revision"].string(), "07");
}

TEST(GkeObjects, OnlySomeXidsSetTheCondition) {
  EXPECT_TRUE(is_gke_condition(48));
  EXPECT_FALSE(is_gke_condition(13));
}

}  // namespace
}  // namespace gantry::agent
