// SPDX-License-Identifier: Apache-2.0
#include "base/sys/replace_file.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gantry::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReplaceFile, MakesDirectoriesAndLeavesNoTemporary) {
  test::Tree tree;
  ASSERT_TRUE(replace_file(tree.path("run/gantry/inventory.json"), "{}", 0640).ok());
  EXPECT_EQ(*tree.host().read("/run/gantry/inventory.json"), "{}");
  EXPECT_EQ(tree.host().info("/run/gantry/inventory.json")->mode, 0640U);
  EXPECT_THAT(*tree.host().list("/run/gantry"), ElementsAre("inventory.json"));
}

TEST(ReplaceFile, MakesDirectoriesThatOnlyTheirOwnerWritesWhateverTheUmask) {
  test::Tree tree;
  for (const auto* umask_and_name : {"0", "077"}) {
    const auto before = ::umask(static_cast<mode_t>(std::strtol(umask_and_name, nullptr, 8)));
    const auto status =
        replace_file(tree.path(std::string("run/") + umask_and_name + "/deep/file"), "x");
    ::umask(before);
    ASSERT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(tree.host().info(std::string("/run/") + umask_and_name + "/deep")->mode, 0755U);
  }
}

TEST(ReplaceFile, KeepsTheOldFileWhenItCannotBeReplaced) {
  test::Tree tree;
  tree.file("dir/name/inside", "x");  // a directory stands where the file should go
  auto status = replace_file(tree.path("dir/name"), "new");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("write " + tree.path("dir/name") + ": "));
  EXPECT_THAT(*tree.host().list("/dir"), ElementsAre("name"));
}

TEST(ReplaceDropIn, LeavesNothingNextToTheDirectory) {
  test::Tree tree;
  tree.file("etc/crio/crio.conf.d/99-nvidia.toml", "old");
  const auto drop_ins = tree.path("etc/crio/crio.conf.d");
  ASSERT_TRUE(replace_drop_in(drop_ins, drop_ins + "/99-nvidia.toml", "new", 0600).ok());
  EXPECT_EQ(*tree.host().read("/etc/crio/crio.conf.d/99-nvidia.toml"), "new");
  EXPECT_EQ(tree.host().info("/etc/crio/crio.conf.d/99-nvidia.toml")->mode, 0600U);
  EXPECT_THAT(*tree.host().list("/etc/crio"), ElementsAre("crio.conf.d"));
}

// A directory on another file system, from where no file can be renamed into the drop-ins.
std::string other_file_system(const test::Tree& tree) {
  struct stat here {};
  if (::stat(tree.root().c_str(), &here) != 0) return "";
  for (const auto* directory : {"/dev/shm", "/tmp", "/var/tmp"}) {
    struct stat there {};
    if (::stat(directory, &there) == 0 && there.st_dev != here.st_dev) return directory;
  }
  return "";
}

TEST(ReplaceDropIn, WritesInsideADirectoryThatIsAMountOfItsOwn) {
  test::Tree tree;
  const auto other = other_file_system(tree);
  if (other.empty()) GTEST_SKIP() << "there is one file system only";
  ASSERT_TRUE(replace_drop_in(other + "/mounted.d", tree.path("crio.conf.d/a.toml"), "x").ok());
  EXPECT_EQ(*tree.host().read("/crio.conf.d/a.toml"), "x");
  EXPECT_THAT(*tree.host().list("/crio.conf.d"), ElementsAre("a.toml"));
}

}  // namespace
}  // namespace gantry::sys
