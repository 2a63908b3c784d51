// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/container_record.hpp"

#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using ::testing::ElementsAre;

ContainerRecord sample(std::string id, std::string state = "/") {
  return {.id = std::move(id),
          .bundle = "/b",
          .state = std::move(state),
          .flavour = "shim",
          .asked = {"environment: NVIDIA_VISIBLE_DEVICES=\"0\""},
          .decided = {"the environment counts"},
          .notes = {"a", "b"},
          .edits = {
              .nodes = {{.path = "/dev/nvidia0",
                         .host_path = "/t",
                         .major = 195,
                         .minor = 0,
                         .why = "GPU 0"}},
              .mounts = {{.host_path = "/h", .container_path = "/c", .why = "w"}},
              .env = {"A=1"},
              .hooks = {{.stage = "createContainer", .path = "/p", .args = {"a"}, .env = {"E=1"}}},
              .libraries = {{.name = "libcuda.so.1", .path = "/x", .is_32bit = true}},
              .files = {{.path = "/f", .content = "c\n", .mode = 0600, .why = "w"}},
              .additional_gids = {44},
              .notes = {"n"}}};
}

TEST(ContainerRecord, SurvivesItsJson) {
  const auto record = sample("c1");
  const auto again = container_record_from_json(to_json(record));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(*again, record);
}

TEST(ContainerRecord, IsWrittenReadAndRemoved) {
  test::Tree tree;
  const auto host = tree.host();
  ASSERT_TRUE(write_container_record(host, sample("c1")).ok());
  EXPECT_EQ(*read_container_record(host, "c1"), sample("c1"));
  remove_container_record(host, "c1");
  EXPECT_EQ(read_container_record(host, "c1").error().code(), Errc::NotFound);
}

TEST(ContainerRecord, NoIdLeadsOutOfTheDirectory) {
  test::Tree tree;
  tree.file("run/gantry/x.json", "{}");
  for (const char* id : {"", "../x", "..", "a/b"}) {
    EXPECT_FALSE(write_container_record(tree.host(), sample(id)).ok()) << id;
    EXPECT_FALSE(read_container_record(tree.host(), id).ok()) << id;
    remove_container_record(tree.host(), id);
  }
  EXPECT_TRUE(tree.host().exists("/run/gantry/x.json"));
}

TEST(ContainerRecord, ThoseOfContainersThatAreGoneAreCollected) {
  test::Tree tree;
  const auto host = tree.host();
  ASSERT_TRUE(write_container_record(host, sample("gone", "/nowhere/gone")).ok());
  ASSERT_TRUE(write_container_record(host, sample("stays", "/")).ok());
  ASSERT_TRUE(write_container_record(host, sample("young", "/nowhere/young")).ok());
  const timespec long_ago[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  for (const char* name : {"gone", "stays"}) {
    const auto path = tree.path(std::string("run/gantry/containers/") + name + ".json");
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  }
  ASSERT_TRUE(write_container_record(host, sample("new")).ok());
  EXPECT_THAT(*host.list("/run/gantry/containers"),
              ElementsAre("new.json", "stays.json", "young.json"));
}

TEST(ContainerRecord, WhatIsNoneIsRefused) {
  for (const char* text : {"", "{}", "[]", R"({"id": 1, "edits": {}})"}) {
    EXPECT_FALSE(container_record_from_json(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gantry::runtime
