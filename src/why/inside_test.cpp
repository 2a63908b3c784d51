// SPDX-License-Identifier: Apache-2.0
#include "why/inside.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::why {
namespace {

using testing::HasSubstr;

// A container that lacks nothing; each test breaks one link.
class WhyInside : public testing::Test {
 protected:
  WhyInside() {
    root_.file("dev/nvidia0").file("dev/nvidiactl").file("lib64/ld-linux-x86-64.so.2");
    root_.file("usr/local/nvidia/lib64/libcuda.so.580.1");
    root_.link("usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.1");
    inside_.driver_version = "580.1";
  }

  Link first_broken() {
    const Chain chain{.links = inside_links(root_.host(), inside_)};
    return chain.first_broken() == nullptr ? Link{.id = "none"} : *chain.first_broken();
  }

  test::Tree root_;
  Inside inside_;
};

TEST_F(WhyInside, WhatLacksNothingHolds) {
  EXPECT_EQ(first_broken().id, "none");
}

TEST_F(WhyInside, WithoutANode) {
  root_.remove("dev/nvidia0");
  EXPECT_EQ(first_broken().id, "container.nodes");
}

TEST_F(WhyInside, WithoutTheControlNode) {
  root_.remove("dev/nvidiactl");
  EXPECT_THAT(first_broken().cause, HasSubstr("/dev/nvidiactl"));
}

TEST_F(WhyInside, OnMusl) {
  root_.remove("lib64/ld-linux-x86-64.so.2").file("lib/ld-musl-x86_64.so.1");
  EXPECT_EQ(first_broken().id, "container.musl");
}

TEST_F(WhyInside, WithoutTheLibrary) {
  root_.remove("usr/local/nvidia/lib64/libcuda.so.1");
  EXPECT_EQ(first_broken().id, "container.libcuda");
}

TEST_F(WhyInside, WithAnotherDriverBeforeOurs) {
  root_.file("opt/old/libcuda.so.384.98").link("opt/old/libcuda.so.1", "libcuda.so.384.98");
  inside_.environment = {"PATH=/bin", "LD_LIBRARY_PATH=/opt/old:/x"};
  const auto link = first_broken();
  EXPECT_EQ(link.id, "container.libcuda");
  EXPECT_THAT(link.cause, HasSubstr("384.98"));
  EXPECT_THAT(link.remedy, HasSubstr("LD_LIBRARY_PATH"));
}

TEST_F(WhyInside, WithAVolumeOverOurs) {
  inside_.mountinfo = "36 35 98:0 /data /usr/local/nvidia/lib64 rw master:1 - ext4 /dev/sda rw\n";
  EXPECT_EQ(first_broken().id, "container.mounts");
  inside_.mountinfo =
      "36 35 98:0 /var/lib/gantry/driver/580.1-0/lib64 /usr/local/nvidia/lib64 ro - ext4 /dev/sda "
      "rw\n";
  EXPECT_EQ(first_broken().id, "none");
}

TEST_F(WhyInside, WithAFrameworkForProcessorsOnly) {
  root_.file("usr/local/lib/python3.11/site-packages/torch/version.py",
             "__version__ = '2.4.0+cpu'\ncuda: Optional[str] = None\n");
  EXPECT_EQ(first_broken().id, "container.framework");
}

TEST(WhyProcess, IsFoundByItsCgroup) {
  test::Tree machine;
  machine.file("proc/1/cgroup", "0::/init.scope\n");
  machine.file("proc/700/cgroup", "0::/kubepods/pod1/0123456789abcdef\n");
  machine.file("proc/650/cgroup", "0::/kubepods/pod1/0123456789abcdef\n");
  const auto pid = process_of(machine.host(), "0123456789ab");
  ASSERT_TRUE(pid.ok());
  EXPECT_EQ(*pid, 650);
  EXPECT_EQ(process_of(machine.host(), "ffffffffffff").error().code(), Errc::NotFound);
  EXPECT_EQ(process_of(machine.host(), "/").error().code(), Errc::Invalid);
}

}  // namespace
}  // namespace gantry::why
