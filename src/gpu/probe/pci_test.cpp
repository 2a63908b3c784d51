// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/pci.hpp"

#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::probe {
namespace {

using model::PciePath;
using test::Tree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A function at the end of a chain of bridges: add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0",
// 0).
void add(Tree& tree, const std::string& place, int numa, std::string_view class_code = "0x030200") {
  const auto directory = "sys/devices/" + place;
  const auto address = place.substr(place.rfind('/') + 1);
  tree.file(directory + "/vendor", "0x10de\n")
      .file(directory + "/device", "0x2335\n")
      .file(directory + "/class", fmt::format("{}\n", class_code))
      .file(directory + "/numa_node", fmt::format("{}\n", numa))
      .link("sys/bus/pci/devices/" + address, "../../../devices/" + place);
}

PciePath path_between(const Tree& tree) {
  const auto scan = scan_pci(tree.host());
  EXPECT_THAT(scan->devices, SizeIs(2));
  return pcie_path(*scan, scan->devices[0], scan->devices[1]);
}

TEST(ScanPci, ListsEveryNvidiaFunctionWithAnyDriver) {
  Tree tree;
  add(tree, "pci0000:00/0000:00:01.0", 1);
  add(tree, "pci0000:00/0000:00:02.0", -1, "0x030000");
  add(tree, "pci0000:00/0000:00:02.1", -1, "0x040300");
  tree.link("sys/devices/pci0000:00/0000:00:01.0/driver", "../../../bus/pci/drivers/vfio-pci")
      .link("sys/devices/pci0000:00/0000:00:01.0/iommu_group", "../../../kernel/iommu_groups/17")
      .file("sys/devices/pci0000:00/0000:00:01.0/driver_override", "vfio-pci\n")
      .file("sys/devices/pci0000:00/0000:00:02.0/driver_override", "(null)\n")
      .file("sys/devices/pci0000:00/0000:00:02.0/local_cpulist", "0-15\n")
      .file("sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n");
  const auto scan = scan_pci(tree.host());
  ASSERT_TRUE(scan.ok());
  ASSERT_THAT(scan->devices, SizeIs(3));
  const auto& passed = scan->devices[0].function;
  EXPECT_EQ(passed.driver, "vfio-pci");
  EXPECT_EQ(passed.driver_override, "vfio-pci");
  EXPECT_EQ(passed.iommu_group, 17);
  EXPECT_EQ(passed.numa_node, 1);
  EXPECT_EQ(passed.device, 0x2335);
  EXPECT_EQ(passed.class_code, 0x030200U);
  const auto& free = scan->devices[1];
  EXPECT_EQ(free.function.driver, "");
  EXPECT_EQ(free.function.driver_override, "");
  EXPECT_EQ(free.function.iommu_group, std::nullopt);
  EXPECT_EQ(free.function.numa_node, std::nullopt);
  EXPECT_EQ(free.cpu_list, "0-15");
  EXPECT_FALSE(scan->devices[2].function.is_gpu());
}

TEST(ScanPci, SeesAFunctionThatFellOffTheBus) {
  Tree tree;
  add(tree, "pci0000:00/0000:00:01.0", 0);
  tree.file("sys/devices/pci0000:00/0000:00:01.0/config", std::string(64, '\xff'));
  EXPECT_TRUE(scan_pci(tree.host())->devices[0].all_ones);
  tree.file("sys/devices/pci0000:00/0000:00:01.0/config", std::string("\xde\x10\x35\x23", 4));
  EXPECT_FALSE(scan_pci(tree.host())->devices[0].all_ones);
}

TEST(ScanPci, NotesAFunctionWithNonsense) {
  Tree tree;
  tree.file("sys/bus/pci/devices/0000:00:01.0/vendor", "0x10de")
      .file("sys/bus/pci/devices/0000:00:01.0/class", "many")
      .file("sys/bus/pci/devices/0000:00:01.0/device", "0x123456789")
      .file("sys/bus/pci/devices/garbage/vendor", "0x10de");
  const auto scan = scan_pci(tree.host());
  ASSERT_TRUE(scan.ok());
  EXPECT_THAT(scan->devices, SizeIs(0));
  EXPECT_THAT(scan->notes, ElementsAre(HasSubstr("0000:00:01.0"), HasSubstr("garbage")));
}

TEST(ScanPci, FailsWithoutSysfs) {
  const auto scan = scan_pci(Tree().host());
  ASSERT_FALSE(scan.ok());
  EXPECT_EQ(scan.error().code(), Errc::NotFound);
  EXPECT_THAT(scan.error().text(), HasSubstr("/sys/bus/pci/devices"));
}

TEST(PciePath, IsPixBehindOneSwitch) {
  Tree tree;
  add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:00.0/0000:43:00.0", 0);
  add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:04.0/0000:44:00.0", 0);
  EXPECT_EQ(path_between(tree), PciePath::SingleSwitch);
}

TEST(PciePath, IsPixBehindOneBridge) {
  Tree tree;
  add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0", 0);
  add(tree, "pci0000:40/0000:40:01.1/0000:41:01.0", 0);
  EXPECT_EQ(path_between(tree), PciePath::SingleSwitch);
}

TEST(PciePath, IsPxbThroughTwoSwitches) {
  Tree tree;
  add(tree,
      "pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:00.0/0000:43:00.0/0000:44:00.0/0000:45:00.0",
      0);
  add(tree,
      "pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:04.0/0000:46:00.0/0000:47:00.0/0000:48:00.0",
      0);
  EXPECT_EQ(path_between(tree), PciePath::MultiSwitch);
}

TEST(PciePath, IsPhbBelowOneHostBridge) {
  Tree tree;
  add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0", 0);
  add(tree, "pci0000:40/0000:40:03.1/0000:61:00.0", 0);
  EXPECT_EQ(path_between(tree), PciePath::HostBridge);
}

TEST(PciePath, IsNodeBetweenHostBridgesOfOneNode) {
  Tree tree;
  add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0", 1);
  add(tree, "pci0000:60/0000:60:01.1/0000:61:00.0", 1);
  EXPECT_EQ(path_between(tree), PciePath::Node);
}

TEST(PciePath, IsSysBetweenNodes) {
  Tree tree;
  add(tree, "pci0000:40/0000:40:01.1/0000:41:00.0", 0);
  add(tree, "pci0000:60/0000:60:01.1/0000:61:00.0", 1);
  EXPECT_EQ(path_between(tree), PciePath::System);
}

TEST(PciePath, NeedsNoNodeNumberOnAMachineWithOneNode) {
  Tree tree;
  add(tree, "LNXSYSTM:00/VMBUS:00/guid-a/pcie322:00/e322:00:00.0", -1);
  add(tree, "LNXSYSTM:00/VMBUS:00/guid-b/pcif001:00/f001:00:00.0", -1);
  tree.file("sys/devices/system/node/online", "0\n");
  EXPECT_EQ(path_between(tree), PciePath::Node);
  tree.file("sys/devices/system/node/online", "0-1\n");
  EXPECT_EQ(path_between(tree), PciePath::Unknown);
}

}  // namespace
}  // namespace gantry::probe
