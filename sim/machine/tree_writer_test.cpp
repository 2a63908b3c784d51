// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/tree_writer.hpp"

#include "base/sys/host.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sim {
namespace {

using ::testing::HasSubstr;

TEST(TreeWriter, ALoopOfLinksIsAnErrorThatNamesOne) {
  const test::Tree tree;
  TreeWriter out(tree.root(), DeviceNodes::Table);
  out.link("/aa", "/bb");
  out.link("/bb", "/aa");
  out.file("/aa/x", "hi");
  ASSERT_FALSE(out.status().ok());
  EXPECT_EQ(out.status().error().code(), Errc::Invalid);
  EXPECT_THAT(out.status().error().text(), HasSubstr("follow the link /aa"));
}

TEST(TreeWriter, ALinkThatGrowsWithEveryStepIsAnError) {
  const test::Tree tree;
  TreeWriter out(tree.root(), DeviceNodes::Table);
  out.link("/a", "/a/b");
  out.relative_link("/a/x", "/a/y");
  EXPECT_FALSE(out.has("/a/x"));
  ASSERT_FALSE(out.status().ok());
  EXPECT_EQ(out.status().error().sys_errno(), ELOOP);
}

TEST(TreeWriter, LinksAreFollowedInsideTheTree) {
  const test::Tree tree;
  TreeWriter out(tree.root(), DeviceNodes::Table);
  out.link("/lib", "usr/lib");
  out.link("/usr/lib/deep", "/var");
  out.file("/lib/./deep//x", "hi");
  ASSERT_TRUE(out.status().ok()) << out.status().error().text();
  EXPECT_EQ(*tree.host().read("/var/x"), "hi");
  EXPECT_TRUE(out.has("/lib/deep/x"));
}

TEST(TreeWriter, AFileThatIsReplacedIsNeverAway) {
  const test::Tree tree;
  TreeWriter out(tree.root(), DeviceNodes::Table);
  out.file("/a", "old");
  // A second name for the old file, which keeps its content when the first name gets a new file.
  ASSERT_EQ(::link(tree.path("a").c_str(), tree.path("same").c_str()), 0);
  ASSERT_EQ(::mkdir(tree.path("directory").c_str(), 0755), 0);
  out.file("/a", "new", 0640);
  ASSERT_TRUE(out.status().ok()) << out.status().error().text();
  EXPECT_EQ(*tree.host().read("/a"), "new");
  EXPECT_EQ(tree.host().info("/a")->mode, 0640U);
  EXPECT_EQ(*tree.host().read("/same"), "old");
  out.file("/directory", "new");  // cannot be replaced: no temporary file is left
  EXPECT_FALSE(out.status().ok());
  EXPECT_THAT(*tree.host().list("/"), ::testing::ElementsAre("a", "directory", "same"));
}

TEST(TreeWriter, AFileThatCannotBeReplacedStays) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write into every directory";
  const test::Tree tree;
  TreeWriter out(tree.root(), DeviceNodes::Table);
  out.file("/d/a", "old");
  ASSERT_EQ(::chmod(tree.path("d").c_str(), 0555), 0);
  out.file("/d/a", "new");
  ASSERT_EQ(::chmod(tree.path("d").c_str(), 0755), 0);
  EXPECT_FALSE(out.status().ok());
  EXPECT_EQ(*tree.host().read("/d/a"), "old");
}

}  // namespace
}  // namespace gantry::sim
