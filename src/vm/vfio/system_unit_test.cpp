// SPDX-License-Identifier: Apache-2.0
#include "support/tree.hpp"
#include "vm/vfio/system_unit_internal.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace gantry::vfio {
namespace {

constexpr std::uint32_t kPid = 811;

class SystemUnit : public ::testing::Test {
 protected:
  SystemUnit() { tree_.directory("sys/fs/cgroup/system.slice/nvidia-dcgm.service/worker"); }
  std::string unit(std::string_view cgroup) { return system_unit(tree_.host(), kPid, cgroup); }
  test::Tree tree_;
};

TEST_F(SystemUnit, IsTheFirstNameThatIsNotASlice) {
  tree_.directory("sys/fs/cgroup/system.slice/system-nvidia.slice/nvidia-dcgm@1.service");
  EXPECT_EQ(unit("0::/system.slice/nvidia-dcgm.service\n"), "nvidia-dcgm.service");
  EXPECT_EQ(unit("0::/system.slice/nvidia-dcgm.service/worker\n"), "nvidia-dcgm.service");
  EXPECT_EQ(unit("0::/system.slice/system-nvidia.slice/nvidia-dcgm@1.service\n"),
            "nvidia-dcgm@1.service");
}

TEST_F(SystemUnit, IsReadFromTheHierarchyOfSystemd) {
  tree_.directory("sys/fs/cgroup/systemd/system.slice/a.service");
  EXPECT_EQ(unit("4:memory:/system.slice/nvidia-dcgm.service\n"
                 "1:name=systemd:/system.slice/a.service\n0::/\n"),
            "a.service");
}

// A user's own systemd delegates cgroups to the user, who makes directories below.
TEST_F(SystemUnit, NamesThatAUserChoseDoNotCount) {
  tree_.directory(
      "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/system.slice/"
      "nvidia-dcgm.service");
  EXPECT_EQ(unit("0::/user.slice/user-1000.slice/user@1000.service/system.slice/"
                 "nvidia-dcgm.service\n"),
            "");
  // A service that may make cgroups, and runs as a user.
  tree_.directory("sys/fs/cgroup/system.slice/jobs.service/nvidia-dcgm.service");
  EXPECT_EQ(unit("0::/system.slice/jobs.service/nvidia-dcgm.service\n"), "jobs.service");
  EXPECT_EQ(unit("0::/system.slice/../user.slice/system.slice/nvidia-dcgm.service\n"), "");
  EXPECT_EQ(unit("0::/system.slice/docker-1.scope/system.slice/nvidia-dcgm.service\n"), "");
}

TEST_F(SystemUnit, DirectoriesThatOthersCanWriteToProveNothing) {
  ASSERT_EQ(::chmod(tree_.path("sys/fs/cgroup/system.slice").c_str(), 0777), 0);
  EXPECT_EQ(unit("0::/system.slice/nvidia-dcgm.service\n"), "");
}

TEST_F(SystemUnit, CgroupThatDoesNotExistProvesNothing) {
  EXPECT_EQ(unit("0::/system.slice/other.service\n"), "");
  EXPECT_EQ(unit("0::/\n"), "");
  EXPECT_EQ(unit("nonsense\n0::\n"), "");
}

// In a container with a cgroup namespace, the path begins somewhere above its own cgroup.
TEST_F(SystemUnit, RelativePathNeedsTheProcessInTheCgroup) {
  constexpr std::string_view kOutside = "0::/../../system.slice/nvidia-dcgm.service\n";
  EXPECT_EQ(unit(kOutside), "");
  tree_.file("sys/fs/cgroup/system.slice/nvidia-dcgm.service/cgroup.procs", "12\n811\n");
  EXPECT_EQ(unit(kOutside), "nvidia-dcgm.service");
}

}  // namespace
}  // namespace gantry::vfio
