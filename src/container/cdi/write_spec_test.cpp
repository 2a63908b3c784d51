// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/write_spec.hpp"

#include "container/cdi/read.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPath = "/var/run/cdi/nvidia.yaml";
constexpr const char* kTheirs =
    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- {name: all, containerEdits: {env: "
    "[A=b]}}\n";

Spec gpu(std::string_view node = "/dev/nvidia0") {
  return {.kind = "nvidia.com/gpu",
          .devices = {{.name = "0", .edits = {.device_nodes = {{.path = std::string(node)}}}}}};
}

TEST(WriteSpec, WritesWhatAnEngineReads) {
  test::Tree tree;
  const auto written = write_spec(tree.host(), kPath, gpu());
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_TRUE(written->changed);
  const auto text = *tree.host().read(kPath);
  EXPECT_TRUE(is_written_by_gantry(text));
  EXPECT_TRUE(text.starts_with("---\n"));
  const auto again = load_spec(text, kPath);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->devices, gpu().devices);
}

TEST(WriteSpec, StaysInsideTheRoot) {
  test::Tree tree;
  tree.directory("run").link("var/run", "/run");
  ASSERT_TRUE(write_spec(tree.host(), kPath, gpu()).ok());
  EXPECT_TRUE(tree.host().exists("/run/cdi/nvidia.yaml"));
}

TEST(WriteSpec, ChangesNothingTheSecondTime) {
  test::Tree tree;
  ASSERT_TRUE(write_spec(tree.host(), kPath, gpu()).ok());
  const auto again = write_spec(tree.host(), kPath, gpu());
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->changed);
  EXPECT_TRUE(write_spec(tree.host(), kPath, gpu("/dev/nvidia1"))->changed);
}

TEST(WriteSpec, NeverReplacesAGoodOneByAnEmptyOne) {
  test::Tree tree;
  ASSERT_TRUE(write_spec(tree.host(), kPath, gpu()).ok());
  const auto before = *tree.host().read(kPath);
  auto empty = gpu();
  empty.devices.clear();
  const auto written = write_spec(tree.host(), kPath, empty);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().text(), HasSubstr("nvidia.yaml is unchanged"));
  EXPECT_THAT(written.error().text(), HasSubstr("there is no device"));
  EXPECT_EQ(*tree.host().read(kPath), before);
}

TEST(WriteSpec, NamesAnotherToolsFileAndDoesNothing) {
  test::Tree tree;
  tree.file("etc/cdi/other.yaml", kTheirs);
  const auto written = write_spec(tree.host(), kPath, gpu());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Errc::Exists);
  EXPECT_THAT(written.error().text(), HasSubstr("/etc/cdi/other.yaml"));
  EXPECT_THAT(written.error().text(), HasSubstr("--take-over"));
  EXPECT_FALSE(tree.host().exists(kPath));
}

TEST(WriteSpec, AnotherToolsFileOfOurNameIsNotOurs) {
  test::Tree tree;
  tree.file("var/run/cdi/nvidia.yaml", kTheirs);
  ASSERT_FALSE(write_spec(tree.host(), kPath, gpu()).ok());
  EXPECT_EQ(*tree.host().read(kPath), kTheirs);
}

TEST(WriteSpec, TakesOverWhenAsked) {
  test::Tree tree;
  tree.file("etc/cdi/other.yaml", kTheirs).file("var/run/cdi/nvidia.yaml", kTheirs);
  const auto written =
      write_spec(tree.host(), kPath, gpu(), {.others = ExistingSpecPolicy::TakeOver});
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_THAT(written->moved, ElementsAre("/etc/cdi/other.yaml", kPath));
  EXPECT_EQ(*tree.host().read("/etc/cdi/other.yaml.before-gantry"), kTheirs);
  EXPECT_EQ(*tree.host().read("/var/run/cdi/nvidia.yaml.before-gantry"), kTheirs);
  EXPECT_FALSE(tree.host().exists("/etc/cdi/other.yaml"));
  EXPECT_TRUE(is_written_by_gantry(*tree.host().read(kPath)));
  EXPECT_THAT(write_spec(tree.host(), kPath, gpu())->moved, IsEmpty()) << "and then it is ours";
}

TEST(WriteSpec, OurOwnFileThatIsHiddenNowIsNamedAndLeft) {
  test::Tree tree;
  ASSERT_TRUE(write_spec(tree.host(), "/etc/cdi/nvidia.yaml", gpu()).ok());
  const auto written = write_spec(tree.host(), kPath, gpu());
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_THAT(written->notes,
              ElementsAre(HasSubstr("sudo rm " + tree.path("etc/cdi/nvidia.yaml"))));
  EXPECT_TRUE(tree.host().exists("/etc/cdi/nvidia.yaml"));
}

TEST(WriteSpec, OurOwnFileThatHidesTheNewOneIsNamed) {
  test::Tree tree;
  ASSERT_TRUE(write_spec(tree.host(), kPath, gpu()).ok());
  const auto written = write_spec(tree.host(), "/etc/cdi/nvidia.yaml", gpu());
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_THAT(written->notes,
              ElementsAre(HasSubstr("sudo rm " + tree.path("var/run/cdi/nvidia.yaml"))));
}

TEST(WriteSpec, OurOwnFileThatWouldCancelTheNewOneIsAnErrorThatSaysSo) {
  test::Tree tree;
  ASSERT_TRUE(write_spec(tree.host(), kPath, gpu()).ok());
  const auto written = write_spec(tree.host(), "/var/run/cdi/second.yaml", gpu());
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().text(), HasSubstr("written by gantry for another --output"));
  EXPECT_THAT(written.error().text(), HasSubstr("sudo rm " + tree.path("var/run/cdi/nvidia.yaml")));
  EXPECT_FALSE(tree.host().exists("/var/run/cdi/second.yaml"));
}

TEST(WriteSpec, OurJsonIsOursTheSecondTime) {
  test::Tree tree;
  ASSERT_TRUE(write_spec(tree.host(), "/etc/cdi/nvidia.json", gpu()).ok());
  EXPECT_TRUE(write_spec(tree.host(), "/etc/cdi/nvidia.json", gpu("/dev/nvidia1")).ok());
}

TEST(WriteSpec, WhatMountsOurDirectoryIsOursWhateverBecameOfTheComment) {
  EXPECT_TRUE(is_written_by_gantry(
      "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  mounts:\n  - "
      "hostPath: /host/var/lib/gantry/driver/580.1-ab/lib64\n"));
  EXPECT_FALSE(is_written_by_gantry(kTheirs));
}

TEST(WriteSpec, WhereNoEngineReadsOnlyTheFileItselfCounts) {
  test::Tree tree;
  tree.file("etc/cdi/nvidia.yaml", kTheirs).file("home/a.yaml", kTheirs).file("home/empty", "");
  EXPECT_TRUE(write_spec(tree.host(), "/home/b.yaml", gpu()).ok());
  EXPECT_TRUE(write_spec(tree.host(), "/home/empty", gpu()).ok());
  const auto over = write_spec(tree.host(), "/home/a.yaml", gpu());
  ASSERT_FALSE(over.ok());
  EXPECT_THAT(over.error().text(), HasSubstr("another tool wrote it"));
}

TEST(WriteSpec, OtherKindsAreNoneOfItsBusiness) {
  test::Tree tree;
  tree.file("etc/cdi/nic.yaml",
            "cdiVersion: 0.5.0\nkind: acme.org/nic\ndevices:\n"
            "- {name: all, containerEdits: {env: [A=b]}}\n");
  EXPECT_TRUE(write_spec(tree.host(), kPath, gpu()).ok());
}

}  // namespace
}  // namespace gantry::cdi
