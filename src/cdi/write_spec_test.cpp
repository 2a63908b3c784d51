// SPDX-License-Identifier: Apache-2.0
#include "cdi/write_spec.hpp"

#include "cdi/read.hpp"
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
  EXPECT_TRUE(is_ours(text));
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
  EXPECT_THAT(written.error().text(), HasSubstr("nvidia.yaml is left as it is"));
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
  const auto written = write_spec(tree.host(), kPath, gpu(), {.others = Others::TakeOver});
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_THAT(written->moved, ElementsAre("/etc/cdi/other.yaml", kPath));
  EXPECT_EQ(*tree.host().read("/etc/cdi/other.yaml.before-gantry"), kTheirs);
  EXPECT_EQ(*tree.host().read("/var/run/cdi/nvidia.yaml.before-gantry"), kTheirs);
  EXPECT_FALSE(tree.host().exists("/etc/cdi/other.yaml"));
  EXPECT_TRUE(is_ours(*tree.host().read(kPath)));
  EXPECT_THAT(write_spec(tree.host(), kPath, gpu())->moved, IsEmpty()) << "and then it is ours";
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
