// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::probe {
namespace {

using model::Discrepancy;
using model::Gpu;
using model::HealthState;
using model::PciePath;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Gpu gpu_at(std::uint8_t bus, const std::string& uuid) {
  Gpu gpu;
  gpu.pci = {.bus = bus};
  gpu.uuid.text = uuid;
  gpu.name = "NVIDIA H200";
  gpu.minor = bus;
  return gpu;
}

Gpu from_nvml(std::uint8_t bus, const std::string& uuid) {
  auto gpu = gpu_at(bus, uuid);
  gpu.memory_bytes = 42;
  gpu.health.state = HealthState::Ok;
  return gpu;
}

Gpu lost_handle() {
  Gpu gpu;
  gpu.health = {HealthState::Lost, {"no handle"}};
  return gpu;
}

KernelView kernel_with(std::vector<Gpu> gpus) {
  KernelView view;
  view.module = {
      .loaded = true, .why_not = "", .version = "580.1", .flavour = model::ModuleFlavour::Open};
  view.gpus = std::move(gpus);
  for (auto& gpu : view.gpus) {
    gpu.numa_node = 1;
    gpu.cpu_list = "0-3";
  }
  return view;
}

model::Inventory nvml_with(std::vector<Gpu> gpus) {
  model::Inventory view;
  view.driver.version = "580.1";
  view.driver.library_version = "580.1";
  view.gpus = std::move(gpus);
  view.links.assign(view.gpus.size(), std::vector<model::Link>(view.gpus.size()));
  return view;
}

PciScan scan_with(const std::vector<std::pair<std::uint8_t, std::string>>& places) {
  PciScan scan;
  for (const auto& [bus, path] : places) {
    PciDevice device;
    device.function.address = {.bus = bus};
    device.path = path;
    scan.devices.push_back(device);
  }
  return scan;
}

TEST(Merge, JoinsWhatEachKnows) {
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a")}), nvml_with({from_nvml(1, "GPU-a")}));
  EXPECT_THAT(all.differences, IsEmpty());
  ASSERT_THAT(all.gpus, SizeIs(1));
  EXPECT_EQ(all.gpus[0].memory_bytes, 42U);
  EXPECT_EQ(all.gpus[0].numa_node, 1);
  EXPECT_EQ(all.gpus[0].cpu_list, "0-3");
  EXPECT_EQ(all.driver.version, "580.1");
  EXPECT_EQ(all.driver.flavour, model::ModuleFlavour::Open);
  EXPECT_EQ(all.links[0][0].pcie, PciePath::Self);
}

TEST(Merge, SaysWhatADamagedInformationFileDoesNot) {
  auto damaged = gpu_at(1, "");
  damaged.name.clear();
  damaged.minor.reset();
  auto kernel = kernel_with({damaged});
  kernel.incomplete = {damaged.pci};
  const auto all = merge({}, kernel, nvml_with({from_nvml(1, "GPU-a")}));
  EXPECT_THAT(all.differences,
              ElementsAre(Discrepancy{"GPU 0000:01:00.0: UUID", "nothing", "GPU-a"},
                          Discrepancy{"GPU 0000:01:00.0: name", "nothing", "NVIDIA H200"},
                          Discrepancy{"GPU 0000:01:00.0: minor", "nothing", "1"}));
  EXPECT_EQ(all.gpus[0].minor, 1U);
}

TEST(Merge, AUuidThatTheDriverHasNotReadYetIsNoDifference) {
  const auto all = merge({}, kernel_with({gpu_at(1, "")}), nvml_with({from_nvml(1, "GPU-a")}));
  EXPECT_THAT(all.differences, IsEmpty());
}

TEST(Merge, SaysWhatNvmlDoesNot) {
  auto mute = from_nvml(1, "GPU-a");
  mute.name.clear();
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a")}), nvml_with({mute}));
  EXPECT_THAT(all.differences,
              ElementsAre(Discrepancy{"GPU 0000:01:00.0: name", "NVIDIA H200", "nothing"}));
  EXPECT_EQ(all.gpus[0].name, "NVIDIA H200");
}

TEST(Merge, SaysThatAGpuOfNvmlIsGoneFromSysfs) {
  auto scan = scan_with({{2, "/sys/devices/pci0000:00/0000:02:00.0"}});
  scan.listed = true;
  const auto all = merge(scan, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")}),
                         nvml_with({from_nvml(1, "GPU-a"), from_nvml(2, "GPU-b")}));
  EXPECT_THAT(all.differences, ElementsAre(Discrepancy{"GPU 0000:01:00.0: PCI function in /sys",
                                                       "absent", "present"}));
}

TEST(Merge, KeepsNvmlsOrder) {
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")}),
                         nvml_with({from_nvml(2, "GPU-b"), from_nvml(1, "GPU-a")}));
  EXPECT_EQ(all.gpus[0].uuid.text, "GPU-b");
  EXPECT_EQ(all.gpus[0].index, 0);
  EXPECT_EQ(all.gpus[1].uuid.text, "GPU-a");
  EXPECT_THAT(all.differences, IsEmpty());
}

TEST(Merge, BelievesTheKernelAloneWhenNvmlDoesNotAnswer) {
  model::Inventory nvml_failed;
  nvml_failed.driver.nvml_error = "no answer in time";
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")}), nvml_failed);
  ASSERT_THAT(all.gpus, SizeIs(2));
  EXPECT_EQ(all.gpus[1].index, 1);
  EXPECT_EQ(all.gpus[0].health.state, HealthState::Unknown);
  EXPECT_EQ(all.gpus[0].mig.current, model::MigMode::Unknown);
  EXPECT_THAT(all.differences, IsEmpty());
  EXPECT_THAT(all.links, SizeIs(2));
}

TEST(Merge, ReportsEveryDisagreement) {
  auto nvml = from_nvml(1, "GPU-other");
  nvml.minor = 9;
  nvml.name = "NVIDIA B200";
  auto view = nvml_with({nvml});
  view.driver.version = "580.2";
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a")}), view);
  EXPECT_THAT(all.differences,
              ElementsAre(Discrepancy{"driver version", "580.1", "580.2"},
                          Discrepancy{"GPU 0000:01:00.0: UUID", "GPU-a", "GPU-other"},
                          Discrepancy{"GPU 0000:01:00.0: name", "NVIDIA H200", "NVIDIA B200"},
                          Discrepancy{"GPU 0000:01:00.0: minor", "1", "9"}));
}

TEST(Merge, FillsALostHandleWithTheGpuThatIsLeftOver) {
  const auto all =
      merge({}, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b"), gpu_at(3, "GPU-c")}),
            nvml_with({from_nvml(1, "GPU-a"), lost_handle(), from_nvml(3, "GPU-c")}));
  ASSERT_THAT(all.gpus, SizeIs(3));
  EXPECT_EQ(all.gpus[1].uuid.text, "GPU-b");
  EXPECT_EQ(all.gpus[1].minor, 2U);
  EXPECT_EQ(all.gpus[1].health.state, HealthState::Lost);
  EXPECT_THAT(all.differences, IsEmpty());
}

TEST(Merge, MatchesByUuidWhereNvmlGaveNoAddress) {
  auto without = from_nvml(2, "GPU-b");
  without.pci = {};
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")}),
                         nvml_with({from_nvml(1, "GPU-a"), without}));
  EXPECT_EQ(all.gpus[1].pci.sysfs(), "0000:02:00.0");
  EXPECT_THAT(all.differences, IsEmpty());
}

TEST(Merge, KnowsThatHyperVsDomainsAreLongerInNvml) {
  auto kernel = kernel_with({gpu_at(0, "GPU-a")});
  kernel.gpus[0].pci = {.domain = 0x8e05};
  auto nvml = from_nvml(0, "GPU-a");
  nvml.pci = {.domain = 0x3e3f8e05};
  const auto all = merge({}, kernel, nvml_with({nvml}));
  ASSERT_THAT(all.gpus, SizeIs(1));
  EXPECT_EQ(all.gpus[0].pci.sysfs(), "8e05:00:00.0");
  EXPECT_THAT(all.differences, IsEmpty());
}

TEST(Merge, ReportsAnAddressThatDiffers) {
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a")}), nvml_with({from_nvml(7, "GPU-a")}));
  EXPECT_THAT(all.gpus, SizeIs(1));
  EXPECT_THAT(all.differences,
              ElementsAre(Discrepancy{"GPU-a: PCI address", "0000:01:00.0", "0000:07:00.0"},
                          Discrepancy{"GPU 0000:01:00.0: minor", "1", "7"}));
}

TEST(Merge, KeepsAGpuThatNvmlDoesNotShow) {
  const auto all = merge({}, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")}),
                         nvml_with({from_nvml(2, "GPU-b")}));
  ASSERT_THAT(all.gpus, SizeIs(2));
  EXPECT_EQ(all.gpus[1].uuid.text, "GPU-a");
  EXPECT_EQ(all.gpus[1].index, 1);
  EXPECT_EQ(all.gpus[1].health.state, HealthState::Degraded);
  EXPECT_THAT(all.gpus[1].health.reasons, ElementsAre(HasSubstr("/dev/nvidia1")));
  EXPECT_THAT(all.differences, ElementsAre(Discrepancy{"GPU 0000:01:00.0", "present", "absent"}));
  EXPECT_THAT(all.links, SizeIs(2));
}

TEST(Merge, KeepsAGpuThatTheKernelDoesNotShow) {
  const auto all = merge({}, kernel_with({}), nvml_with({from_nvml(1, "GPU-a")}));
  EXPECT_THAT(all.gpus, SizeIs(1));
  EXPECT_THAT(all.differences, ElementsAre(Discrepancy{"GPU 0000:01:00.0", "absent", "present"}));
}

TEST(Merge, SaysOnceThatTheModuleIsMissing) {
  const auto all =
      merge({}, KernelView{}, nvml_with({from_nvml(1, "GPU-a"), from_nvml(2, "GPU-b")}));
  EXPECT_THAT(all.differences, ElementsAre(Discrepancy{"kernel module", "not loaded", "answers"}));
}

TEST(Merge, MarksLostWhatTheKernelKnowsToBeLost) {
  auto kernel = kernel_with({gpu_at(1, "GPU-a")});
  kernel.gpus[0].health = {HealthState::Lost, {"all ones"}};
  const auto all = merge({}, kernel, nvml_with({from_nvml(1, "GPU-a")}));
  EXPECT_EQ(all.gpus[0].health.state, HealthState::Lost);
}

TEST(Merge, TakesPathsFromTheTreeOfBridgesWhereNvmlHasNone) {
  const auto scan = scan_with({{1, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"},
                               {2, "/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0"}});
  const auto all = merge(scan, kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")}),
                         nvml_with({from_nvml(1, "GPU-a"), from_nvml(2, "GPU-b")}));
  EXPECT_EQ(all.links[0][1].pcie, PciePath::HostBridge);
  EXPECT_EQ(all.links[1][0].pcie, PciePath::HostBridge);
  EXPECT_THAT(all.differences, IsEmpty());
  EXPECT_THAT(all.functions, SizeIs(2));
}

TEST(Merge, ReportsAPathThatDiffersButNotASharedBoard) {
  const auto scan = scan_with({{1, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"},
                               {2, "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0"}});
  const auto kernel = kernel_with({gpu_at(1, "GPU-a"), gpu_at(2, "GPU-b")});
  auto nvml = nvml_with({from_nvml(1, "GPU-a"), from_nvml(2, "GPU-b")});
  nvml.links[0][1].pcie = nvml.links[1][0].pcie = PciePath::SameBoard;
  EXPECT_THAT(merge(scan, kernel, nvml).differences, IsEmpty());
  EXPECT_EQ(merge(scan, kernel, nvml).links[0][1].pcie, PciePath::SameBoard);
  nvml.links[0][1].pcie = nvml.links[1][0].pcie = PciePath::System;
  EXPECT_THAT(merge(scan, kernel, nvml).differences,
              ElementsAre(Discrepancy{"path between GPU 0 and GPU 1", "PIX", "SYS"}));
}

}  // namespace
}  // namespace gantry::probe
