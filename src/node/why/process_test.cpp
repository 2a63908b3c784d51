// SPDX-License-Identifier: Apache-2.0
#include "node/why/process.hpp"

#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using testing::HasSubstr;

constexpr std::string_view kId = "0123456789abcdef";

std::string stat_with_start(int start) {
  return fmt::format("7 (a) b) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 {} 0\n", start);
}

TEST(WhyProcess, IsFoundByItsCgroup) {
  test::Tree machine;
  machine.file("proc/1/cgroup", "0::/init.scope\n");
  machine.file("proc/700/cgroup", "0::/kubepods/pod1/0123456789abcdef\n");
  machine.file("proc/650/cgroup", "0::/kubepods/pod1/0123456789abcdef\n");
  const auto pid = container_process(machine.host(), "0123456789ab");
  ASSERT_TRUE(pid.ok());
  EXPECT_EQ(*pid, 650);
  EXPECT_EQ(container_process(machine.host(), "ffffffffffff").error().code(), Errc::NotFound);
  EXPECT_EQ(container_process(machine.host(), "/").error().code(), Errc::Invalid);
}

TEST(WhyProcess, TheOldestIsTheFirstWhateverItsNumber) {
  test::Tree machine;
  for (const int pid : {300, 900}) {
    machine.file(fmt::format("proc/{}/cgroup", pid),
                 fmt::format("0::/system.slice/cri-containerd-{}.scope\n", kId));
    machine.file(fmt::format("proc/{}/stat", pid), stat_with_start(pid == 900 ? 50 : 60));
  }
  EXPECT_EQ(*container_process(machine.host(), kId), 900);
}

TEST(WhyProcess, AGroupNamedLikeAnotherContainerDoesNotDeceive) {
  test::Tree machine;
  machine.file("proc/20/cgroup", fmt::format("0::/kubepods/pod2/fedcba9876543210/{}\n", kId));
  machine.file("proc/30/cgroup", fmt::format("0::/kubepods/pod1/{}\n", kId));
  EXPECT_EQ(*container_process(machine.host(), kId), 30);
}

TEST(WhyProcess, HalfAnIdThatTwoContainersBeginWithIsRefused) {
  test::Tree machine;
  machine.file("proc/20/cgroup", "0::/kubepods/pod1/0123456789abcdef\n");
  machine.file("proc/30/cgroup", "0::/kubepods/pod2/0123456789abffff\n");
  const auto pid = container_process(machine.host(), "0123456789ab");
  ASSERT_FALSE(pid.ok());
  EXPECT_THAT(pid.error().text(), HasSubstr("write more of the id"));
}

TEST(WhyProcess, TheMiddleOfAPodsNameIsNoContainer) {
  test::Tree machine;
  machine.file("proc/20/cgroup", "0::/kubepods/podaaa0123456789ab/ffffffffffffffff\n");
  EXPECT_EQ(container_process(machine.host(), "0123456789ab").error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::why
