// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/mount_table.hpp"

#include <gmock/gmock.h>

namespace gantry::rootfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kMounts =
    "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "21 20 0:20 / /run rw,nosuid shared:5 - tmpfs tmpfs rw\n"
    "30 20 8:1 /b/rootfs /b/rootfs rw master:1 - ext4 /dev/sda1 rw\n"
    "31 30 0:50 / /b/rootfs/dev rw,nosuid - tmpfs tmpfs rw\n"
    "32 30 0:20 / /b/rootfs/host-run rw - tmpfs tmpfs rw\n"
    "33 30 0:51 / /b/rootfs/proc rw - proc proc rw\n"
    "34 20 0:52 / /b/rootfs-of-another rw - tmpfs tmpfs rw\n"
    "35 30 0:53 / /b/rootfs/with\\040blank rw - tmpfs tmpfs rw\n";

TEST(MountTable, ReadsPlacesAsTheyAre) {
  const auto mounts = parse_mountinfo(kMounts);
  ASSERT_EQ(mounts.size(), 8U);
  EXPECT_EQ(mounts[1], (MountEntry{.id = 21,
                                   .device = "0:20",
                                   .place = "/run",
                                   .type = "tmpfs",
                                   .shared = true,
                                   .parent = 20,
                                   .root = "/"}));
  EXPECT_EQ(mounts[7].place, "/b/rootfs/with blank");
  EXPECT_FALSE(mounts[2].shared);
}

TEST(MountTable, LinesThatAreNoneAreLeftOut) {
  EXPECT_THAT(parse_mountinfo("\n1\n - \n1 2 3 - x\nx 1 8:1 / / rw - ext4 a rw\n"), IsEmpty());
  EXPECT_EQ(parse_mountinfo("1 2 0:1 / /a\\ rw - tmpfs\n").front().place, "/a\\");
}

TEST(MountTable, MemoryThatIsOnlyBelowTheRootIsTheContainers) {
  const auto mounts = parse_mountinfo(kMounts);
  std::vector<std::uint64_t> own;
  for (const auto& mount : mounts) {
    if (is_container_tmpfs(mounts, mount.id, "/b/rootfs")) own.push_back(mount.id);
  }
  // Not the host's /run bound into it, nor procfs, nor what has a similar name.
  EXPECT_THAT(own, ElementsAre(31, 35));
  EXPECT_FALSE(is_container_tmpfs(mounts, 31, "/"));
  EXPECT_FALSE(is_container_tmpfs(mounts, 999, "/b/rootfs"));
}

}  // namespace
}  // namespace gantry::rootfs
