// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/classic_injection.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ClassicInjection, NodesAreKnownByWhatTheyAre) {
  const model::ContainerEdits edits{.nodes = {{.path = "/dev/nvidia0", .host_path = "/dev/zero"},
                                              {.path = "/dev/nvidiactl", .host_path = "/dev/null"},
                                              {.path = "/dev/again", .host_path = "/dev/null"}}};
  const auto work = check_sources(edits, NodeBinds::Make);
  ASSERT_TRUE(work.ok());
  EXPECT_THAT(work->rules, ElementsAre(DeviceRule{1, 3}, DeviceRule{1, 5}));
  ASSERT_EQ(work->binds.size(), 3U);
  EXPECT_TRUE(work->binds[0].options.read_only);
  EXPECT_TRUE(work->binds[0].options.devices);
  EXPECT_TRUE(work->binds[0].options.no_exec);
}

TEST(ClassicInjection, WithoutDeviceBindsTheRulesRemain) {
  const model::ContainerEdits edits{.nodes = {{.path = "/dev/nvidia0", .host_path = "/dev/zero"}}};
  const auto work = check_sources(edits, NodeBinds::Leave);
  ASSERT_TRUE(work.ok());
  EXPECT_TRUE(work->binds.empty());
  EXPECT_EQ(work->rules.size(), 1U);
}

TEST(ClassicInjection, AFileInANodesPlaceIsRefused) {
  test::Tree tree;
  tree.file("dev/nvidia0");
  const auto work = check_sources(
      {.nodes = {{.path = "/d", .host_path = tree.path("dev/nvidia0")}}}, NodeBinds::Make);
  ASSERT_FALSE(work.ok());
  EXPECT_THAT(work.error().text(), HasSubstr("is not a character device"));
}

TEST(ClassicInjection, WhatOthersCanWriteIsNoSource) {
  test::Tree tree;
  tree.file("lib64/libcuda.so.1").directory("open");
  ::chmod(tree.path("open").c_str(), 0777);
  ::chmod(tree.path("lib64/libcuda.so.1").c_str(), 0664);
  for (const auto* path : {"open", "lib64/libcuda.so.1"}) {
    const auto looked =
        check_mount_sources({{.host_path = tree.path(path), .container_path = "/x"}});
    ASSERT_FALSE(looked.ok()) << path;
    EXPECT_EQ(looked.error().code(), Errc::Denied);
    EXPECT_THAT(looked.error().text(), HasSubstr("users other than root could change it"));
  }
}

TEST(ClassicInjection, AMissingSourceIsNamedWithTheCommandThatHelps) {
  const auto looked =
      check_mount_sources({{.host_path = "/nowhere/lib64", .container_path = "/x"}});
  ASSERT_FALSE(looked.ok());
  EXPECT_EQ(looked.error().code(), Errc::NotFound);
  EXPECT_THAT(looked.error().text(), HasSubstr("gantry cdi refresh"));
}

TEST(ClassicInjection, OptionsOfTheMountAreKept) {
  test::Tree tree;
  tree.directory("run");
  const auto looked = check_mount_sources({{.host_path = tree.path("run"),
                                            .container_path = "/run/x",
                                            .options = {"nosuid", "nodev", "noexec", "rbind"}}});
  ASSERT_TRUE(looked.ok());
  EXPECT_FALSE(looked->front().options.read_only);
  EXPECT_TRUE(looked->front().options.no_exec);
  EXPECT_FALSE(looked->front().options.devices);
}

TEST(ClassicInjection, AProcessWithoutMountsOfItsOwnIsLeftAlone) {
  const auto here = ContainerProcess::open(::getpid());
  ASSERT_TRUE(here.ok());
  const auto done = inject_into(*here, {.rootfs = "/tmp"});
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), HasSubstr("container error"));
  EXPECT_THAT(done.error().text(), HasSubstr("would be made on the host"));
}

}  // namespace
}  // namespace gantry::runtime
