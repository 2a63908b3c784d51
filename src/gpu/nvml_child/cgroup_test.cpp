// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/cgroup.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gantry::nvml_child {
namespace {

const std::string container_id(64, 'a');
constexpr std::string_view kUid = "6f9c1d1e-0a1b-4c2d-8e3f-001122334455";
constexpr std::string_view kUnderscored = "6f9c1d1e_0a1b_4c2d_8e3f_001122334455";

TEST(CgroupOwner, OfCgroupfs) {
  const auto owner =
      parse_cgroup_owner(fmt::format("0::/kubepods/burstable/pod{}/{}\n", kUid, container_id));
  EXPECT_EQ(owner, (CgroupOwner{std::string(kUid), container_id}));
}

TEST(CgroupOwner, OfSystemd) {
  const auto owner = parse_cgroup_owner(
      fmt::format("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/"
                  "cri-containerd-{}.scope\n",
                  kUnderscored, container_id));
  EXPECT_EQ(owner, (CgroupOwner{std::string(kUid), container_id}));
}

TEST(CgroupOwner, OfContainerdWithoutSystemd) {
  const auto owner = parse_cgroup_owner(
      fmt::format("12:devices:/system.slice/kubepods-besteffort-pod{}.slice:cri-containerd:{}",
                  kUnderscored, container_id));
  EXPECT_EQ(owner, (CgroupOwner{std::string(kUid), container_id}));
}

TEST(CgroupOwner, OfAStaticPod) {
  const std::string uid(32, 'b');
  EXPECT_EQ(parse_cgroup_owner(fmt::format("0::/kubepods/pod{}/{}", uid, container_id)).pod_uid,
            uid);
}

TEST(CgroupOwner, OfAContainerWithoutPod) {
  const auto owner =
      parse_cgroup_owner(fmt::format("0::/system.slice/docker-{}.scope\n", container_id));
  EXPECT_EQ(owner, (CgroupOwner{"", container_id}));
}

TEST(CgroupOwner, OfNoContainer) {
  for (const auto* text : {"", "0::/\n", "0::/user.slice/user-0.slice/podman.scope", "pod",
                           "::::", "0::/kubepods/pod1234/x"}) {
    EXPECT_EQ(parse_cgroup_owner(text), CgroupOwner{}) << text;
  }
}

}  // namespace
}  // namespace gantry::nvml_child
