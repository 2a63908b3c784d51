// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/device_nodes.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::driver {
namespace {

using test::Tree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDevices =
    "Character devices:\n"
    "  1 mem\n"
    "195 nvidia\n"
    "195 nvidiactl\n"
    "238 nvidia-uvm\n"
    "241 nvidia-caps\n"
    "242 nvidia-caps-imex-channels\n"
    "\n"
    "Block devices:\n"
    "241 nvidia-block-that-is-not-ours\n";

constexpr const char* kTable =
    "/dev/nvidia0 c 195 0 0666 0 0\n"
    "/dev/nvidia10 c 195 10 0666 0 0\n"
    "/dev/nvidia2 c 195 2 0660 0 44\n"
    "/dev/nvidiactl c 195 255 0666 0 0\n"
    "/dev/nvidia-uvm c 238 0 0666 0 0\n"
    "/dev/nvidia-uvm-tools c 238 1 0666 0 0\n"
    "/dev/nvidia-caps/nvidia-cap1 c 241 1 0400 0 0\n"
    "/dev/nvidia-caps/nvidia-cap12 c 241 12 0444 0 0\n"
    "/dev/nvidia-caps-imex-channels/channel0 c 242 0 0666 0 0\n";

std::vector<std::string> paths(const DeviceNodes& found) {
  std::vector<std::string> names;
  for (const auto& node : found.nodes) names.push_back(node.path + " = " + node.why);
  return names;
}

const model::DeviceNode& at(const DeviceNodes& found, std::string_view path) {
  for (const auto& node : found.nodes) {
    if (node.path == path) return node;
  }
  static const model::DeviceNode none;
  return none;
}

TEST(FindNodes, ListsEachWithItsReasonControlFirst) {
  Tree tree;
  tree.file("proc/devices", kDevices).file("dev.table", kTable);
  tree.file("proc/driver/nvidia-caps/mig-minors",
            "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi1/access 12\n");
  const auto found = find_device_nodes(tree.host(), std::vector<std::uint32_t>{0, 2, 10});
  EXPECT_THAT(paths(found),
              ElementsAre("/dev/nvidiactl = control", "/dev/nvidia-uvm = unified memory",
                          "/dev/nvidia-uvm-tools = unified memory, for profilers",
                          "/dev/nvidia0 = GPU with minor 0", "/dev/nvidia2 = GPU with minor 2",
                          "/dev/nvidia10 = GPU with minor 10",
                          "/dev/nvidia-caps/nvidia-cap1 = MIG configuration",
                          "/dev/nvidia-caps/nvidia-cap12 = MIG capability gpu0/gi1",
                          "/dev/nvidia-caps-imex-channels/channel0 = IMEX channel 0"));
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_EQ(at(found, "/dev/nvidia2").mode, 0660U);
  EXPECT_EQ(at(found, "/dev/nvidia2").gid, 44U);
}

TEST(FindNodes, OldDriversRegisterOneFrontend) {
  Tree tree;
  tree.file("proc/devices", "Character devices:\n195 nvidia-frontend\n247 nvidia-uvm\n");
  tree.file("dev.table",
            "/dev/nvidia0 c 195 0 0666 0 0\n/dev/nvidiactl c 195 255 0666 0 0\n/dev/nvidia-modeset "
            "c 195 254 0666 0 0\n"
            "/dev/nvidia-uvm c 247 0 0666 0 0\n/dev/nvidia-uvm-tools c 247 1 0666 0 0\n");
  EXPECT_THAT(find_device_nodes(tree.host(), std::vector<std::uint32_t>{0}).problems, IsEmpty());
}

TEST(FindNodes, ReportsNumbersThatTheKernelDidNotGiveOut) {
  Tree tree;
  tree.file("proc/devices", kDevices);
  tree.file("dev.table", std::string(kTable) + "/dev/nvidia1 c 195 7 0666 0 0\n");
  tree.file("proc/devices",
            "Character devices:\n195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n241 nvidia-caps\n"
            "242 nvidia-caps-imex-channels\n");
  const auto found = find_device_nodes(tree.host(), {});
  ASSERT_EQ(found.problems.size(), 3U);
  EXPECT_EQ(found.problems[0].path, "/dev/nvidia-uvm");
  EXPECT_EQ(found.problems[0].fault, DeviceNodeFault::WrongNumbers);
  EXPECT_THAT(found.problems[0].text, HasSubstr("is 238:0 but the kernel assigned 511:0"));
  EXPECT_EQ(found.problems[1].path, "/dev/nvidia-uvm-tools");
  EXPECT_THAT(found.problems[2].text, HasSubstr("/dev/nvidia1 is 195:7"));
}

TEST(FindNodes, ReportsNodesThatShouldBeThere) {
  Tree tree;
  tree.file("proc/devices", kDevices).file("dev/nvidia1", "a file, no node");
  tree.file("dev.table", "/dev/nvidiactl c 195 255 0666 0 0\n");
  const auto found = find_device_nodes(tree.host(), std::vector<std::uint32_t>{0, 1});
  ASSERT_EQ(found.problems.size(), 4U);
  EXPECT_EQ(found.problems[0].path, "/dev/nvidia0");
  EXPECT_EQ(found.problems[0].fault, DeviceNodeFault::Missing);
  EXPECT_THAT(found.problems[0].text, HasSubstr("is missing; `gantry doctor --fix`"));
  EXPECT_EQ(found.problems[1].fault, DeviceNodeFault::NotADevice);
  EXPECT_EQ(found.problems[2].path, "/dev/nvidia-uvm");
}

TEST(FindNodes, NodesOfAnUnloadedModuleAreLeftOver) {
  Tree tree;
  tree.file("proc/devices", "Character devices:\n  1 mem\n");
  tree.file("dev.table", "/dev/nvidia0 c 195 0 0666 0 0\n");
  const auto found = find_device_nodes(tree.host(), {});
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].fault, DeviceNodeFault::Unregistered);
  EXPECT_THAT(found.problems[0].text, HasSubstr("/dev/nvidia0 is left over"));
}

TEST(FindNodes, DrmNodesBelongToTheGpusOfTheDriver) {
  Tree tree;
  tree.file("proc/devices", "Character devices:\n195 nvidia\n226 drm\n");
  tree.directory("proc/driver/nvidia/gpus/0000:3B:00.0")
      .directory("sys/bus/pci/devices/0000:3b:00.0/drm/card1");
  tree.directory("sys/bus/pci/devices/0000:3b:00.0/drm/renderD128");
  tree.file("dev.table",
            "/dev/dri/card0 c 226 0 0660 0 44\n/dev/dri/card1 c 226 1 0660 0 44\n"
            "/dev/dri/renderD128 c 226 128 0660 0 105\n");
  tree.link("dev/dri/by-path/pci-0000:3b:00.0-card", "../card1");
  tree.link("dev/dri/by-path/pci-0000:3b:00.0-render", "../renderD129");  // of another node
  EXPECT_THAT(paths(find_device_nodes(tree.host(), {})),
              ElementsAre("/dev/dri/card1 = DRM of 0000:3B:00.0",
                          "/dev/dri/renderD128 = DRM of 0000:3B:00.0"));
  EXPECT_THAT(find_device_nodes(tree.host(), {}).drm,
              ElementsAre(DrmNode{"0000:3B:00.0", "/dev/dri/card1"},
                          DrmNode{"0000:3B:00.0", "/dev/dri/by-path/pci-0000:3b:00.0-card"},
                          DrmNode{"0000:3B:00.0", "/dev/dri/renderD128"}));
}

TEST(FindNodes, AMachineWithoutTheDriverHasNone) {
  Tree tree;
  const auto found = find_device_nodes(tree.host(), {});
  EXPECT_THAT(found.nodes, IsEmpty());
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST(CapabilityNode, IsNamedByItsMinor) {
  EXPECT_EQ(capability_node(30), "/dev/nvidia-caps/nvidia-cap30");
}

}  // namespace
}  // namespace gantry::driver
