// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_users/device_users.hpp"

#include "gpu/device_users/node_search.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::device_users {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const model::PciAddress used_gpu{.bus = 0x3b};

struct BusyMachine {
  test::Tree tree;
  BusyMachine() {
    tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information",
              "GPU UUID: \t GPU-a\nDevice Minor: \t 3\n");
    tree.link("sys/bus/pci/devices/0000:3b:00.0/iommu_group", "../../../kernel/iommu_groups/17");
    tree.directory("sys/bus/pci/devices/0000:3b:00.0/drm/card1");
    tree.directory("sys/bus/pci/devices/0000:3b:00.0/drm/renderD129");
    tree.directory("sys/bus/pci/devices/0000:3b:00.0/vfio-dev/vfio2");
    add_process(10, "other", "/dev/nvidia4");
  }
  void add_process(int pid, const std::string& name, const std::string& node) {
    const auto directory = "proc/" + std::to_string(pid);
    tree.file(directory + "/comm", name + "\n");
    tree.link(directory + "/fd/0", "/dev/null");
    tree.link(directory + "/fd/7", node);
  }
};

TEST(DeviceUsers, KnowsEveryNodeOfAGpu) {
  const BusyMachine machine;
  EXPECT_THAT(*device_nodes(machine.tree.host(), used_gpu),
              ElementsAre("/dev/nvidia3", "/dev/dri/card1", "/dev/dri/renderD129",
                          "/dev/vfio/devices/vfio2", "/dev/vfio/17"));
}

TEST(DeviceUsers, AreThoseWithANodeOpen) {
  BusyMachine machine;
  EXPECT_THAT(*find_users(machine.tree.host(), used_gpu), IsEmpty());
  machine.add_process(4711, "python3", "/dev/nvidia3");
  machine.add_process(900, "qemu", "/dev/vfio/17");
  machine.tree.file("proc/4711/cgroup",
                    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod6f9c1d1e_"
                    "1111_2222_3333_444455556666.slice/cri-containerd-x.scope\n");
  const auto users = find_users(machine.tree.host(), used_gpu);
  ASSERT_TRUE(users.ok()) << users.error().text();
  ASSERT_EQ(users->size(), 2U);
  EXPECT_EQ(describe((*users)[0]), "process 900 (qemu) with /dev/vfio/17 open");
  EXPECT_EQ(describe((*users)[1]),
            "process 4711 (python3) of pod 6f9c1d1e-1111-2222-3333-444455556666 with /dev/nvidia3 "
            "open");
}

TEST(DeviceUsers, AreShownWithTheirCommandLine) {
  BusyMachine machine;
  machine.add_process(4711, "python3", "/dev/nvidia3");
  machine.tree.file("proc/4711/cmdline", std::string_view("python3\0train.py\0", 17));
  EXPECT_EQ(describe(find_users(machine.tree.host(), used_gpu)->front()),
            "process 4711 (python3 train.py) with /dev/nvidia3 open");
  machine.tree.file("proc/4711/cmdline", std::string(5000, 'x'));
  EXPECT_EQ(find_users(machine.tree.host(), used_gpu)->front().line, std::string(77, 'x') + "...");
}

TEST(DeviceUsers, AreAlsoThoseWithOnlyAMapping) {
  BusyMachine machine;
  machine.add_process(4711, "python3", "/dev/null");
  machine.tree.file("proc/4711/maps",
                    "7f00-7f01 r--p 00000000 08:01 12     /usr/lib/libc.so.6\n"
                    "7f02-7f03 rw-s 00000000 00:06 440    /dev/nvidia3\n");
  const auto users = find_users(machine.tree.host(), used_gpu);
  ASSERT_TRUE(users.ok()) << users.error().text();
  ASSERT_EQ(users->size(), 1U);
  EXPECT_EQ(users->front().node, "/dev/nvidia3");
}

TEST(DeviceUsers, ANodeThatWasRemovedMeanwhileIsStillInUse) {
  BusyMachine machine;
  machine.add_process(4711, "python3", "/dev/nvidia3 (deleted)");
  EXPECT_EQ(find_users(machine.tree.host(), used_gpu)->size(), 1U);
}

// On the machine itself the device number decides: a chroot has its nodes at other paths.
TEST(NodeSearch, FindsANodeUnderAnotherNameByItsNumber) {
  test::Tree tree;
  tree.link("full", "/dev/full");
  const auto here = sys::Host::at("/");
  ASSERT_TRUE(here.ok());
  const std::vector<std::string> nodes{tree.path("full")};
  const NodeSearch search(*here, nodes);
  const auto pid = static_cast<std::uint32_t>(::getpid());
  EXPECT_THAT(*search.used_by(pid), IsEmpty());
  const auto full = here->open("/dev/full", O_RDONLY);
  ASSERT_TRUE(full.ok()) << full.error().text();
  EXPECT_THAT(*search.used_by(pid), ElementsAre(nodes.front()));
}

TEST(DeviceUsers, OfMigInstancesAreUsersOfTheGpu) {
  BusyMachine machine;
  machine.tree.file("proc/driver/nvidia-caps/mig-minors",
                    "config 1\nmonitor 2\ngpu3/gi1/access 12\ngpu3/gi1/ci0/access 13\n"
                    "gpu4/gi1/access 30\n");
  machine.add_process(4711, "train", "/dev/nvidia-caps/nvidia-cap13");
  machine.add_process(4712, "other", "/dev/nvidia-caps/nvidia-cap30");
  const auto users = find_users(machine.tree.host(), used_gpu);
  ASSERT_EQ(users->size(), 1U);
  EXPECT_EQ(users->front().pid, 4711U);
  EXPECT_EQ(find_node_users(machine.tree.host(), {"/dev/nvidia-caps/nvidia-cap30"})->front().pid,
            4712U);
  EXPECT_THAT(*find_node_users(machine.tree.host(), {}), IsEmpty());
}

TEST(DeviceUsers, OfAGpuWithoutNodesAreNone) {
  const BusyMachine machine;
  EXPECT_THAT(*find_users(machine.tree.host(), {.bus = 0x77}), IsEmpty());
}

}  // namespace
}  // namespace gantry::device_users
