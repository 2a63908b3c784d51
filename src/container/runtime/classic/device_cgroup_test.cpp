// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/device_cgroup.hpp"

#include "base/sys/host.hpp"
#include "container/runtime/classic/device_bpf_internal.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gantry::runtime {
namespace {

using testing::HasSubstr;

constexpr const char* kHybrid =
    "25 20 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "26 25 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "30 25 0:27 / /sys/fs/cgroup/devices rw,relatime shared:7 - cgroup cgroup rw,devices\n"
    "33 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
constexpr const char* kPure = "25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

std::optional<CgroupLocation> found(std::string_view cgroup, std::string_view mounts) {
  auto place = device_cgroup(cgroup, mounts);
  EXPECT_TRUE(place.ok()) << (place.ok() ? "" : place.error().text());
  return place.ok() ? *place : std::nullopt;
}

TEST(DeviceCgroup, V1WinsWhereItHasTheDevices) {
  EXPECT_EQ(found("8:devices:/docker/71ab\n1:name=systemd:/x\n0::/docker/71ab\n", kHybrid),
            (CgroupLocation{CgroupVersion::V1, "/sys/fs/cgroup/devices/docker/71ab"}));
}

TEST(DeviceCgroup, V2WhereThereIsNoOther) {
  EXPECT_EQ(found("0::/system.slice/docker-71ab.scope\n", kPure),
            (CgroupLocation{CgroupVersion::V2, "/sys/fs/cgroup/system.slice/docker-71ab.scope"}));
}

TEST(DeviceCgroup, V2BesideV1HierarchiesWithoutDevices) {
  EXPECT_EQ(found("4:cpu,cpuacct:/a\n0::/b\n", kHybrid),
            (CgroupLocation{CgroupVersion::V2, "/sys/fs/cgroup/unified/b"}));
}

TEST(DeviceCgroup, V2WhereTheControllerOfV1IsNotMounted) {
  const CgroupLocation v2{CgroupVersion::V2, "/sys/fs/cgroup/docker/71ab"};
  EXPECT_EQ(found("8:devices:/\n0::/docker/71ab\n", kPure), v2);
  EXPECT_EQ(found("8:devices:/user.slice\n0::/docker/71ab\n", kPure), v2);
}

TEST(DeviceCgroup, TheRootRefusesNothing) {
  EXPECT_EQ(found("8:devices:/\n0::/\n", kHybrid), std::nullopt);
}

TEST(DeviceCgroup, ColonsInTheNameAreKept) {
  EXPECT_EQ(found("0::/system.slice/a:b:c\n", kPure)->directory,
            "/sys/fs/cgroup/system.slice/a:b:c");
}

TEST(DeviceCgroup, AMountOfAPartShowsOnlyThatPart) {
  const auto part = "25 20 0:22 /docker /cg rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(found("0::/docker/71ab\n", part)->directory, "/cg/71ab");
  EXPECT_EQ(device_cgroup("0::/dockerfoo/71ab\n", part).error().code(), Errc::NotFound);
}

TEST(DeviceCgroup, BlanksInAMountPointAreUnescaped) {
  EXPECT_EQ(found("0::/a\n", "25 20 0:22 / /my\\040cg rw - cgroup2 cgroup2 rw\n")->directory,
            "/my cg/a");
}

TEST(DeviceCgroup, OutsideOfOurNamespaceIsNoPlace) {
  const auto place = device_cgroup("0::/../other\n", kPure);
  ASSERT_FALSE(place.ok());
  EXPECT_THAT(place.error().text(), HasSubstr("this process cannot see the cgroup"));
}

TEST(DeviceCgroup, NoMountIsSaid) {
  const auto place = device_cgroup("8:devices:/docker\n", kPure);
  ASSERT_FALSE(place.ok());
  EXPECT_THAT(place.error().text(), HasSubstr("no cgroup v1 devices mount shows /docker"));
}

TEST(DeviceCgroup, NonsenseIsNoCgroup) {
  for (const auto* text : {"", "8", "::", "8:devices", "x\ny\n"}) {
    EXPECT_EQ(device_cgroup(text, kPure).ok(), false) << text;
  }
  EXPECT_FALSE(device_cgroup("0::/a\n", "garbage - \n - cgroup2\n").ok());
}

TEST(DeviceCgroup, V1TakesOneExactLineForEachNode) {
  test::Tree tree;
  tree.file("devices.allow");
  auto cgroup = DeviceCgroup::open({CgroupVersion::V1, tree.root()});
  ASSERT_TRUE(cgroup.ok());
  const std::vector<DeviceRule> rules{{195, 0}, {510, 1}};
  ASSERT_TRUE(cgroup->allow(rules).ok());
  EXPECT_EQ(*tree.host().read("/devices.allow"), "c 195:0 rwc 510:1 rw");
}

TEST(DeviceCgroup, ARefusingKernelIsNamedWithTheCgroup) {
  test::Tree tree;
  auto cgroup = DeviceCgroup::open({CgroupVersion::V1, tree.root()});
  ASSERT_TRUE(cgroup.ok());
  const std::vector<DeviceRule> rules{{195, 0}};
  const auto refused = cgroup->allow(rules);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr(tree.root() + "/devices.allow"));
}

// A cgroup of the running kernel with a program that refuses everything, as a runtime makes it.
class RealCgroup : public testing::Test {
 protected:
  void SetUp() override {
    const auto host = *sys::Host::at("/");
    const auto mounts = *host.read("/proc/self/mountinfo");
    const auto here = device_cgroup("0::/gantry-test\n", mounts);
    if (::geteuid() != 0 || !here.ok() || !here->has_value()) {
      GTEST_SKIP() << "needs root and a cgroup2 mount";
    }
    directory_ = fmt::format("{}-{}", (*here)->directory, ::getpid());
    if (::mkdir(directory_.c_str(), 0755) != 0) GTEST_SKIP() << "cannot make " << directory_;
    group_.emplace(*DeviceCgroup::open({CgroupVersion::V2, directory_}));
    fd_ = sys::UniqueFd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override {
    if (!directory_.empty()) ::rmdir(directory_.c_str());
  }

  bool refuse_everything(std::uint32_t flags) {
    std::vector<bpf_insn> code(2);
    code[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
    code[1].code = BPF_JMP | BPF_EXIT;
    const auto program = load_device_program(code);
    if (!program.ok()) return false;
    return attach_device_program(fd_.get(), program->get(), flags).ok();
  }

  // In a child that moves there.
  bool opens(const char* node, int flags) const {
    const pid_t child = ::fork();
    if (child == 0) {
      std::ofstream(directory_ + "/cgroup.procs") << ::getpid();
      ::_exit(::open(node, flags | O_CLOEXEC) >= 0 ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }

  std::string directory_;
  std::optional<DeviceCgroup> group_;
  sys::UniqueFd fd_;
};

const std::vector<DeviceRule> zero_node{{1, 5}};  // /dev/zero

TEST_F(RealCgroup, AnOpenCgroupIsLeftAlone) {
  ASSERT_TRUE(group_->allow(zero_node).ok());
  EXPECT_TRUE(attached_device_programs(fd_.get())->ids.empty());
  EXPECT_TRUE(opens("/dev/null", O_RDWR));
}

TEST_F(RealCgroup, OurNodeOpensAndTheOthersDoNot) {
  if (!refuse_everything(BPF_F_ALLOW_MULTI)) GTEST_SKIP() << "the kernel takes no device program";
  ASSERT_FALSE(opens("/dev/zero", O_RDWR));
  const auto done = group_->allow(zero_node);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_TRUE(opens("/dev/zero", O_RDWR));
  EXPECT_FALSE(opens("/dev/null", O_RDWR));
  EXPECT_EQ(attached_device_programs(fd_.get())->ids.size(), 1U);
}

TEST_F(RealCgroup, ASingleProgramIsReplacedToo) {
  if (!refuse_everything(0)) GTEST_SKIP() << "the kernel takes no device program";
  ASSERT_TRUE(group_->allow(zero_node).ok());
  EXPECT_TRUE(opens("/dev/zero", O_RDONLY));
  EXPECT_FALSE(opens("/dev/null", O_RDONLY));
}

TEST_F(RealCgroup, EachOfSeveralProgramsIsReplaced) {
  if (!refuse_everything(BPF_F_ALLOW_MULTI) || !refuse_everything(BPF_F_ALLOW_MULTI)) {
    GTEST_SKIP() << "the kernel takes no device program";
  }
  ASSERT_TRUE(group_->allow(zero_node).ok());
  EXPECT_TRUE(opens("/dev/zero", O_RDONLY));
  EXPECT_EQ(attached_device_programs(fd_.get())->ids.size(), 2U);
}

TEST_F(RealCgroup, AskedTwiceNothingGrows) {
  if (!refuse_everything(BPF_F_ALLOW_MULTI)) GTEST_SKIP() << "the kernel takes no device program";
  ASSERT_TRUE(group_->allow(zero_node).ok());
  const auto first = attached_device_programs(fd_.get())->ids;
  ASSERT_TRUE(group_->allow(zero_node).ok());
  EXPECT_EQ(attached_device_programs(fd_.get())->ids, first);
}

}  // namespace
}  // namespace gantry::runtime
