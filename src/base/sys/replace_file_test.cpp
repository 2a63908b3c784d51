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

}  // namespace
}  // namespace gantry::sys
