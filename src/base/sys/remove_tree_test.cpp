// SPDX-License-Identifier: Apache-2.0
#include "base/sys/remove_tree.hpp"

#include "base/sys/unique_fd.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gantry::sys {
namespace {

class RemoveTree : public ::testing::Test {
 protected:
  Status remove(const std::string& name) const {
    const UniqueFd parent(::open(tree_.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return remove_tree(parent.get(), name);
  }
  test::Tree tree_;
};

TEST_F(RemoveTree, RemovesFilesLinksAndDirectories) {
  tree_.file("kept", "x").file("top/a/b/file", "x").file("top/c/file", "x").directory("top/empty");
  tree_.link("top/a/link", "../../kept").link("top/out", "/");
  const auto done = remove("top");
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_FALSE(tree_.host().exists("/top"));
  EXPECT_TRUE(tree_.host().exists("/kept"));
}

TEST_F(RemoveTree, RemovesMoreLevelsThanDescriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto levels = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 2000)) + 100;
  UniqueFd open(::open(tree_.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < levels; ++i) {
    ASSERT_EQ(::mkdirat(open.get(), "top", 0755), 0);
    UniqueFd below(::openat(open.get(), "top", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    open = std::move(below);
  }
  const auto done = remove("top");
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_FALSE(tree_.host().exists("/top"));
}

TEST_F(RemoveTree, LinkIsNotFollowed) {
  tree_.file("kept/file", "x").link("top", "kept");
  EXPECT_FALSE(remove("top").ok());
  EXPECT_TRUE(tree_.host().exists("/kept/file"));
}

}  // namespace
}  // namespace gantry::sys
