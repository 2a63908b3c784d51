// SPDX-License-Identifier: Apache-2.0
#include "gantry/driver_user.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using ::testing::HasSubstr;

model::DeviceNode video_node() {
  return {.path = "/dev/nvidia0", .major = 195, .minor = 0, .mode = 0660, .uid = 0, .gid = 33};
}

TEST(DriverUser, NamesComeFromTheMachineNotFromUs) {
  test::Tree tree;
  tree.file("etc/passwd", "root:x:0:0::/root:/bin/sh\nsles:x:1000:100::/home:/bin/sh\n");
  tree.file("etc/group", "root:x:0:\nvideo:x:33:sles\n");
  EXPECT_EQ(*parse_driver_user(tree.host(), "root:video"), (DriverUser{.uid = 0, .gid = 33}));
  EXPECT_EQ(*parse_driver_user(tree.host(), "sles"), (DriverUser{.uid = 1000, .gid = 100}));
  EXPECT_EQ(*parse_driver_user(tree.host(), "5:6"), (DriverUser{.uid = 5, .gid = 6}));
  EXPECT_THAT(parse_driver_user(tree.host(), "root:render").error().text(),
              HasSubstr("no group render"));
}

TEST(DriverUser, AnotherUserMayNotOpenAGroupsNode) {
  EXPECT_FALSE(may_open({}, video_node()));
  EXPECT_TRUE(may_open({.uid = 0, .gid = 33}, video_node()));
  EXPECT_TRUE(may_open({.uid = 1000, .gid = 100, .groups = {33}}, video_node()));
}

TEST(DriverUser, TheFirstFittingClassDecides) {
  auto node = video_node();
  node.mode = 0066;  // the owner has no access
  EXPECT_FALSE(may_open({.uid = 0, .gid = 33}, node));
  EXPECT_TRUE(may_open({.uid = 5, .gid = 5}, node));
}

TEST(DriverUser, ConfiguredInTheToolkitsFile) {
  test::Tree tree;
  tree.file(
      "etc/nvidia-container-runtime/config.toml",
      "user = \"no:section\"\n[nvidia-container-cli]\n#user = \"a:b\"\nuser = \"root:video\"\n");
  EXPECT_EQ(configured_driver_user(tree.host()), "root:video");
  tree.file("etc/nvidia-container-runtime/config.toml", "[nvidia-container-cli]\nuser = 5\n");
  EXPECT_EQ(configured_driver_user(tree.host()), std::nullopt);
}

}  // namespace
}  // namespace gantry::cli
