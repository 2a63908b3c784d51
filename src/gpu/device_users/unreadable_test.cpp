// SPDX-License-Identifier: Apache-2.0
// Processes whose descriptors may not be read, as without CAP_SYS_PTRACE.
#include "base/sys/child.hpp"
#include "gpu/device_users/node_search.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gantry::device_users {
namespace {

// What an ordinary user finds about process 4711: "1 /dev/nvidia0", "none", or "denied".
std::string found_by_user(const test::Tree& tree) {
  const auto look = [&]() -> std::string {
    const std::vector<std::string> nodes{"/dev/nvidia0"};
    const auto host = tree.host();
    const auto uses = NodeSearch(host, nodes).uses_of(4711);
    if (!uses.ok()) return uses.error().code() == Errc::Denied ? "denied" : uses.error().text();
    return uses->empty() ? "none" : std::to_string(uses->front().opens) + " " + uses->front().path;
  };
  EXPECT_EQ(::chmod(tree.root().c_str(), 0755), 0);
  if (::geteuid() != 0) return look();
  const sys::ChildUser nobody{.uid = 61234, .gid = 61234};
  const auto answer = sys::run_in_child(look, {.user = &nobody});
  return answer.ok() ? *answer : answer.error().text();
}

class UnreadableProcess : public ::testing::Test {
 protected:
  UnreadableProcess() { tree_.link("proc/4711/fd/3", "/dev/nvidia0").link("proc/4711/fd/4", "/x"); }
  ~UnreadableProcess() override { allow(); }
  void deny() { EXPECT_EQ(::chmod(tree_.path("proc/4711/fd").c_str(), 0), 0); }
  void allow() { ::chmod(tree_.path("proc/4711/fd").c_str(), 0755); }
  test::Tree tree_;
};

TEST_F(UnreadableProcess, CountsHowOftenANodeIsOpen) {
  EXPECT_EQ(found_by_user(tree_), "1 /dev/nvidia0");
  tree_.link("proc/4711/fd/5", "/dev/nvidia0");
  EXPECT_EQ(found_by_user(tree_), "2 /dev/nvidia0");
}

TEST_F(UnreadableProcess, IsNotOneWithoutNodes) {
  deny();
  tree_.file("proc/4711/stat", "4711 (train) S 1 1 1 0 -1 4194560 0\n");
  EXPECT_EQ(found_by_user(tree_), "denied");
}

// Root without CAP_SYS_PTRACE may list the descriptors, and not see where they lead.
TEST_F(UnreadableProcess, DescriptorsThatCanOnlyBeListedAreNotRead) {
  ASSERT_EQ(::chmod(tree_.path("proc/4711/fd").c_str(), 0744), 0);
  tree_.file("proc/4711/stat", "4711 (train) S 1 1 1 0 -1 4194560 0\n");
  EXPECT_EQ(found_by_user(tree_), "denied");
}

TEST_F(UnreadableProcess, MappingsCountToo) {
  tree_.remove("proc/4711/fd/3").file("proc/4711/maps", "");
  tree_.file("proc/4711/stat", "4711 (train) S 1 1 1 0 -1 4194560 0\n");
  ASSERT_EQ(::chmod(tree_.path("proc/4711/maps").c_str(), 0), 0);
  EXPECT_EQ(found_by_user(tree_), "denied");
}

TEST_F(UnreadableProcess, ThreadsOfTheKernelAndZombiesHaveNone) {
  deny();
  tree_.file("proc/4711/stat", "4711 (kworker/0:1) I 2 0 0 0 -1 69238880 0\n");
  EXPECT_EQ(found_by_user(tree_), "none");
  tree_.file("proc/4711/stat", "4711 (train) Z 1 1 1 0 -1 4194560 0\n");
  EXPECT_EQ(found_by_user(tree_), "none");
}

}  // namespace
}  // namespace gantry::device_users
