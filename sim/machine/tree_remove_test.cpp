// SPDX-License-Identifier: Apache-2.0
#include "base/sys/child.hpp"
#include "base/sys/host.hpp"
#include "sim/machine/tree.hpp"
#include "sim/machine/tree_remove_internal.hpp"
#include "support/tree.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gantry::sim {
namespace {

using ::testing::HasSubstr;

// The result of `work` in a child with its own mounts, where `from` is mounted on `to`.
std::string with_mount(const std::string& from, const std::string& to,
                       const std::function<Status()>& work) {
  const auto answer = sys::run_in_child(
      [&]() -> std::string {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0) {
          return "cannot mount";
        }
        const auto status = work();
        return status.ok() ? "ok" : status.error().text();
      },
      {});
  return answer.ok() ? *answer : answer.error().text();
}

Status create_at(const std::string& root) {
  const auto created =
      create(*load_machine("h200"),
             {.root = root, .nodes = DeviceNodes::Table, .existing = ExistingTree::ReplaceOurs});
  return created.ok() ? Status{} : Status(created.error());
}

#define GANTRY_NEEDS_MOUNTS()                                                            \
  if (::geteuid() != 0 || with_mount("/tmp", "/tmp", [] { return Status{}; }) != "ok") { \
    GTEST_SKIP() << "needs root and mounts";                                             \
  }                                                                                      \
  static_assert(true)

TEST(Create, DoesNotReplaceATreeWithAMountInIt) {
  GANTRY_NEEDS_MOUNTS();
  test::Tree tree;
  tree.file("precious/data", "mine");
  const auto root = tree.path("a machine");  // the kernel writes the blank as \040
  ASSERT_TRUE(create_at(root).ok());
  const auto text =
      with_mount(tree.path("precious"), root + "/proc", [&] { return create_at(root); });
  EXPECT_THAT(text, HasSubstr("/a machine/proc is mounted in the tree"));
  EXPECT_EQ(*tree.host().read("/precious/data"), "mine");
  EXPECT_EQ(read_marker(root)->machine, "h200");
}

TEST(Create, SaysSoBeforeBuildingOnAMountPoint) {
  GANTRY_NEEDS_MOUNTS();
  test::Tree tree;
  tree.directory("empty").directory("root");
  const auto text = with_mount(tree.path("empty"), tree.path("root"),
                               [&] { return create_at(tree.path("root")); });
  EXPECT_THAT(text, HasSubstr("is a mount point; name a directory below it"));
}

TEST(RemoveTree, DoesNotEnterAnotherMount) {
  GANTRY_NEEDS_MOUNTS();
  test::Tree tree;
  tree.file("precious/data", "mine").directory("old/a/mounted").file("old/z/file", "x");
  const auto text = with_mount(tree.path("precious"), tree.path("old/a/mounted"),
                               [&] { return remove_tree(tree.path("old")); });
  EXPECT_THAT(text, HasSubstr("/old/a/mounted is a mount point and was not changed"));
  EXPECT_EQ(*tree.host().read("/precious/data"), "mine");
  EXPECT_FALSE(tree.host().exists("/old/z"));  // the rest was removed
}

TEST(RemoveTree, RemovesLinksAndNotWhatTheyPointTo) {
  test::Tree tree;
  tree.file("precious/data", "mine").file("old/a/b", "x").link("old/l", tree.path("precious"));
  EXPECT_TRUE(remove_tree(tree.path("old")).ok());
  EXPECT_TRUE(remove_tree(tree.path("old")).ok());  // a missing tree is not an error
  EXPECT_FALSE(tree.host().exists("/old"));
  EXPECT_EQ(*tree.host().read("/precious/data"), "mine");
}

}  // namespace
}  // namespace gantry::sim
