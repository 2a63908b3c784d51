// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/kernel_view.hpp"

#include "support/paths.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::probe {
namespace {

using model::ModuleFlavour;
using test::Tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kOpen =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@)\n"
    "GCC version:  gcc version 15.3.0 (GCC)\n";
constexpr std::string_view kInformation =
    "Model: \t\t NVIDIA A100\n"
    "GPU UUID: \t GPU-aaaa\n"
    "Video BIOS: \t 92.00.a5.00.1a\n"
    "Device Minor: \t 3\n"
    "GPU Firmware: \t N/A\n"
    "GPU Excluded:\t No\n";

// `Tree` cannot be copied, so the machine is added to one.
void load_driver(Tree& tree) {
  tree.file("proc/driver/nvidia/version", kOpen).directory("sys/module/nvidia");
  tree.directory("proc/driver/nvidia/gpus").directory("sys/bus/pci/devices");
}

void add_gpu(Tree& tree, const std::string& address, std::string_view information) {
  tree.file("proc/driver/nvidia/gpus/" + address + "/information", information);
}

KernelView view_of(const sys::Host& host) {
  const auto scan = scan_pci(host);
  return read_kernel_view(host, read_driver_module(host), scan.ok() ? *scan : PciScan{});
}

TEST(KernelView, ReadsTheRecordedH200) {
  const auto host = sys::Host::at(test::source_dir() + "/tests/golden/h200");
  ASSERT_TRUE(host.ok());
  const auto view = view_of(*host);
  EXPECT_TRUE(view.module.loaded);
  EXPECT_EQ(view.module.version, "580.159.04");
  EXPECT_EQ(view.module.flavour, ModuleFlavour::Open);
  EXPECT_THAT(view.notes, IsEmpty());
  ASSERT_THAT(view.gpus, SizeIs(1));
  const auto& gpu = view.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.uuid.text, "GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(gpu.pci.sysfs(), "0000:00:06.0");
  EXPECT_EQ(gpu.minor, 0U);
  EXPECT_EQ(gpu.numa_node, std::nullopt) << "sysfs says -1";
  EXPECT_EQ(gpu.cpu_list, "0-15");
  EXPECT_EQ(gpu.vbios, "96.00.A5.00.1A");
  EXPECT_EQ(gpu.gsp_firmware, "580.159.04");
  EXPECT_EQ(gpu.pci_device_id, 0x233510deU);
  EXPECT_EQ(gpu.pci_subsystem_id, 0x18bf10deU);
  EXPECT_EQ(gpu.memory_bytes, std::nullopt) << "only NVML knows";
  EXPECT_EQ(gpu.health.state, model::HealthState::Unknown);
}

TEST(DriverModule, IsLoadedWithoutRefcntOrInitstate) {
  Tree tree;
  load_driver(tree);
  EXPECT_TRUE(read_driver_module(tree.host()).loaded);
}

TEST(DriverModule, IsNotLoadedWhileItIsComingOrGoing) {
  Tree tree;
  load_driver(tree);
  tree.file("sys/module/nvidia/initstate", "going\n").file("sys/module/nvidia/refcnt", "1\n");
  const auto module = read_driver_module(tree.host());
  EXPECT_FALSE(module.loaded);
  EXPECT_THAT(module.why_not, HasSubstr("going"));
}

TEST(DriverModule, IsNotLoadedWithoutItsDirectoryOrVersion) {
  Tree tree;
  load_driver(tree);
  tree.remove("sys/module/nvidia");
  EXPECT_THAT(read_driver_module(tree.host()).why_not, HasSubstr("/sys/module/nvidia"));
  Tree other;
  load_driver(other);
  other.remove("proc/driver/nvidia/version");
  EXPECT_FALSE(read_driver_module(other.host()).loaded);
  EXPECT_THAT(read_driver_module(other.host()).why_not, HasSubstr("/proc/driver/nvidia/version"));
}

TEST(KernelView, LeavesExcludedGpusOutAndSaysSo) {
  Tree tree;
  load_driver(tree);
  add_gpu(tree, "0000:01:00.0", kInformation);
  add_gpu(tree, "0000:02:00.0", "GPU Excluded:\t Yes\n");
  const auto view = view_of(tree.host());
  EXPECT_THAT(view.gpus, SizeIs(1));
  EXPECT_THAT(view.excluded, SizeIs(1));
  EXPECT_THAT(view.notes, Contains(HasSubstr("0000:02:00.0 is excluded")));
}

TEST(KernelView, SortsByAddressAcrossDomains) {
  Tree tree;
  load_driver(tree);
  add_gpu(tree, "10000:01:00.0", kInformation);
  add_gpu(tree, "e322:00:00.0", kInformation);
  add_gpu(tree, "0000:81:00.0", kInformation);
  const auto view = view_of(tree.host());
  ASSERT_THAT(view.gpus, SizeIs(3));
  EXPECT_EQ(view.gpus[0].pci.sysfs(), "0000:81:00.0");
  EXPECT_EQ(view.gpus[1].pci.sysfs(), "e322:00:00.0");
  EXPECT_EQ(view.gpus[2].pci.sysfs(), "10000:01:00.0");
}

TEST(KernelView, NotesABoundFunctionThatTheDriverDoesNotHave) {
  Tree tree;
  load_driver(tree);
  tree.file("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de")
      .file("sys/bus/pci/devices/0000:01:00.0/device", "0x2335")
      .file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200")
      .link("sys/bus/pci/devices/0000:01:00.0/driver", "../../drivers/nvidia");
  const auto view = view_of(tree.host());
  EXPECT_THAT(view.notes, ElementsAre(HasSubstr("0000:01:00.0 is bound to nvidia but")));
}

TEST(KernelView, MarksAGpuLostWhoseConfigurationReadsOnes) {
  Tree tree;
  load_driver(tree);
  add_gpu(tree, "0000:01:00.0", kInformation);
  tree.file("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de")
      .file("sys/bus/pci/devices/0000:01:00.0/device", "0x2335")
      .file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200")
      .file("sys/bus/pci/devices/0000:01:00.0/config", std::string(64, '\xff'));
  const auto view = view_of(tree.host());
  EXPECT_EQ(view.gpus.at(0).health.state, model::HealthState::Lost);
}

TEST(KernelView, KeepsAGpuWhoseInformationCannotBeRead) {
  Tree tree;
  load_driver(tree);
  tree.directory("proc/driver/nvidia/gpus/0000:01:00.0");
  const auto view = view_of(tree.host());
  ASSERT_THAT(view.gpus, SizeIs(1));
  EXPECT_EQ(view.gpus[0].minor, std::nullopt);
  EXPECT_THAT(view.notes, Contains(HasSubstr("0000:01:00.0/information")));
  EXPECT_THAT(view.incomplete, SizeIs(1));
}

TEST(KernelView, SaysWhatADamagedInformationFileLacks) {
  Tree tree;
  load_driver(tree);
  add_gpu(tree, "0000:01:00.0", "Model: \t\t NVIDIA H200\nDevice Minor: \t many\n");
  const auto view = view_of(tree.host());
  EXPECT_THAT(view.notes, Contains(HasSubstr("does not say: GPU UUID, Device Minor")));
  EXPECT_THAT(view.incomplete, SizeIs(1));
}

TEST(KernelView, NotesAGpuThatSysfsDoesNotHave) {
  Tree tree;
  load_driver(tree);
  add_gpu(tree, "0000:01:00.0", kInformation);
  const auto view = view_of(tree.host());
  EXPECT_THAT(view.notes,
              ElementsAre(HasSubstr("/sys/bus/pci/devices/0000:01:00.0 does not exist")));
}

TEST(KernelView, HasNoGpusWithoutADriver) {
  Tree tree;
  const auto view = view_of(tree.host());
  EXPECT_FALSE(view.module.loaded);
  EXPECT_THAT(view.gpus, IsEmpty());
  EXPECT_THAT(view.notes, SizeIs(1));
}

}  // namespace
}  // namespace gantry::probe
