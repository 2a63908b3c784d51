// SPDX-License-Identifier: Apache-2.0
#include "container/oci/apply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::oci {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string applied(const std::string& text, const model::ContainerEdits& edits) {
  const auto config = json::Document::parse(text);
  EXPECT_TRUE(config.ok());
  auto result = apply(*config, edits);
  EXPECT_TRUE(result.ok()) << result.error().text();
  return result.ok() ? *result : "";
}

model::DeviceNodeEdit gpu0() {
  return {.path = "/dev/nvidia0",
          .host_path = "/dev/nvidia0",
          .major = 195,
          .minor = 0,
          .mode = 0660,
          .gid = 44};
}

TEST(Apply, NothingToDoLeavesEveryByte) {
  const std::string text = "{ \"process\" : {\"env\": [ ] } , \"x\": 1.50 }\n";
  EXPECT_EQ(applied(text, {}), text);
}

TEST(Apply, ANodeComesWithAnExactRule) {
  EXPECT_EQ(applied("{}", {.nodes = {gpu0()}}),
            R"({"linux":{"devices":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0,)"
            R"("fileMode":432,"uid":0,"gid":44}],"resources":{"devices":[{"allow":true,"type":"c",)"
            R"("major":195,"minor":0,"access":"rw"}]}}})");
}

TEST(Apply, ANodeAtTheSamePlaceIsReplaced) {
  const auto text = applied(
      R"({"linux":{"devices":[{"path":"/dev/nvidia0","major":1},{"path":"/dev/fuse","major":10}]}})",
      {.nodes = {gpu0()}});
  EXPECT_THAT(text, Not(HasSubstr("\"major\":1}")));
  EXPECT_THAT(text, HasSubstr("/dev/fuse"));
}

TEST(Apply, RulesComeAfterTheDenialOfEverything) {
  const auto text =
      applied(R"({"linux":{"resources":{"devices":[{"allow":false,"access":"rwm"}]}}})",
              {.nodes = {gpu0()}});
  EXPECT_LT(text.find("\"allow\":false"), text.find("\"allow\":true"));
}

TEST(Apply, ANodeWithoutNumbersIsRefused) {
  auto node = gpu0();
  node.major.reset();
  EXPECT_EQ(apply(*json::Document::parse("{}"), {.nodes = {node}}).error().code(), Errc::Invalid);
}

TEST(Apply, InAUserNamespaceANodeFromElsewhereIsBound) {
  auto node = gpu0();
  node.host_path = "/tree/dev/nvidia0";
  const auto text = applied(R"({"linux":{"namespaces":[{"type":"user"}]}})", {.nodes = {node}});
  EXPECT_THAT(text, HasSubstr(R"("source":"/tree/dev/nvidia0")"));
  EXPECT_THAT(text, Not(HasSubstr("fileMode")));
  EXPECT_THAT(text, HasSubstr(R"("allow":true)"));
}

TEST(Apply, TheEnvironmentIsReplacedByName) {
  EXPECT_EQ(applied(R"({"process":{"env":["A=1","B=2","A=3","AB=4"]}})", {.env = {"A=9", "C=5"}}),
            R"({"process":{"env":["A=9","B=2","AB=4","C=5"]}})");
}

TEST(Apply, MountsGoToTheEndAndReplaceThoseAtTheirPlace) {
  const auto text = applied(
      R"({"mounts":[{"destination":"/usr/local/nvidia/lib64","source":"x"},{"destination":"/p"}]})",
      {.mounts = {{.host_path = "/h", .container_path = "/usr/local/nvidia/lib64"}}});
  EXPECT_EQ(
      text,
      R"({"mounts":[{"destination":"/p"},{"destination":"/usr/local/nvidia/lib64",)"
      R"("type":"bind","source":"/h","options":["ro","nosuid","nodev","rbind","rprivate"]}]})");
}

TEST(Apply, HooksOfTheClassicChainGo) {
  const auto text = applied(
      R"({"hooks":{"prestart":[{"path":"/usr/bin/nvidia-container-runtime-hook"},)"
      R"({"path":"/x/mine"},{"path":"/opt/nvidia-container-toolkit"}]}})",
      {.hooks = {{.stage = "createContainer", .path = "/h", .args = {"h", "a"}, .env = {"E="}}}});
  EXPECT_EQ(text, R"({"hooks":{"prestart":[{"path":"/x/mine"}],)"
                  R"("createContainer":[{"path":"/h","args":["h","a"],"env":["E="]}]}})");
}

TEST(Apply, GroupsAreAddedOnce) {
  EXPECT_EQ(applied(R"({"process":{"user":{"uid":7,"additionalGids":[44]}}})",
                    {.additional_gids = {44, 45}}),
            R"({"process":{"user":{"uid":7,"additionalGids":[44,45]}}})");
}

TEST(Apply, TheClassicHookIsAddedOnce) {
  const auto once =
      add_classic_hook(*json::Document::parse("{}"), "/usr/bin/nvidia-container-runtime-hook");
  ASSERT_TRUE(once.ok());
  EXPECT_THAT(*once, HasSubstr(R"("args":["nvidia-container-runtime-hook","prestart"])"));
  EXPECT_EQ(*add_classic_hook(*json::Document::parse(*once), "/other/nvidia-container-toolkit"),
            *once);
}

}  // namespace
}  // namespace gantry::oci
