// SPDX-License-Identifier: Apache-2.0
// Machines in, QEMU's command line out. To write the golden files again after a change that is
// meant: GANTRY_WRITE_GOLDEN=1 build/dev/sim/sim_test --gtest_filter='Boot.*'
#include "sim/machine/boot.hpp"

#include "base/core/text.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gantry::sim {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string lane_machine() {
  return test::source_dir() + "/tests/vm/host.yaml";
}

BootPlan plan_of(const std::string& name, BootOptions options = {}) {
  const auto machine = load_machine(name);
  EXPECT_TRUE(machine.ok()) << machine.error().text();
  options.parts = "/parts";
  const auto plan = plan_boot(*machine, options);
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  return *plan;
}

std::string one_argument_per_line(const BootPlan& plan) {
  std::string text = fmt::format("LD_PRELOAD={}\n", plan.preload);
  for (const auto& word : plan.qemu) text += word + "\n";
  return text;
}

void expect_golden(const std::string& name, const std::string& text) {
  const auto path = fmt::format("{}/tests/golden/boot/{}.txt", test::source_dir(), name);
  if (std::getenv("GANTRY_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

// The values of -device for one type of device.
std::vector<std::string> devices(const BootPlan& plan, std::string_view type) {
  std::vector<std::string> found;
  for (const auto& word : plan.qemu) {
    if (word.starts_with(fmt::format("{},", type))) found.push_back(word);
  }
  return found;
}

Result<BootPlan> plan_of_text(std::string_view pci) {
  const auto text = fmt::format("gpus: []\npci:\n{}", pci);
  const auto machine = parse_machine(text, "test.yaml");
  EXPECT_TRUE(machine.ok()) << machine.error().text();
  return plan_boot(*machine, {.parts = "/parts"});
}

TEST(Boot, WritesTheCommandLineOfEightH200) {
  expect_golden("h200x8", one_argument_per_line(plan_of("h200x8")));
}

TEST(Boot, WritesTheCommandLineOfTheLanesHost) {
  expect_golden("host", one_argument_per_line(plan_of(lane_machine(), {.kernel = "6.12"})));
}

TEST(Boot, WritesTheCommandLineOfAWorkstationWithAnAudioFunction) {
  expect_golden("k620", one_argument_per_line(plan_of("k620")));
}

TEST(Boot, GivesEightH200TheAddressesOfTheDescription) {
  const auto plan = plan_of("h200x8");
  ASSERT_EQ(plan.gpus.size(), 8U);
  for (const auto& gpu : plan.gpus) EXPECT_EQ(gpu.described, gpu.booted);
}

TEST(Boot, NumbersBusesWithoutGapsAsTheFirmwareDoes) {
  const auto plan = plan_of("t4x4");  // described: 3b, 3c, af, b0
  std::vector<std::string> booted;
  for (const auto& gpu : plan.gpus) booted.push_back(gpu.booted.sysfs());
  EXPECT_THAT(booted, ::testing::ElementsAre("0000:3a:00.0", "0000:3b:00.0", "0000:af:00.0",
                                             "0000:b0:00.0"));
}

TEST(Boot, PutsADeviceOfAnotherDomainOnTheMainBus) {
  const auto plan = plan_of("k80");
  EXPECT_EQ(plan.gpus.front().described.sysfs(), "e322:00:00.0");
  EXPECT_EQ(plan.gpus.front().booted.sysfs(), "0000:00:01.0");
}

TEST(Boot, BuildsEveryMachineOfTheCatalogue) {
  for (const auto& entry : machine_catalog()) {
    SCOPED_TRACE(entry.name);
    const auto plan = plan_of(entry.name);
    EXPECT_EQ(plan.gpus.size(), load_machine(entry.name)->gpus.size());
  }
}

TEST(Boot, DividesLargeBarsAndKeepsSmallOnes) {
  EXPECT_THAT(devices(plan_of("h200"), "gantry-gpu").front(),
              HasSubstr(",bar0=16M,bar2=64M,bar4=32M,wide-bars=0x15"));
  EXPECT_THAT(devices(plan_of("h200", {.bar_divisor = 1}), "gantry-gpu").front(),
              HasSubstr(",bar0=16M,bar2=262144M,bar4=32M,"));
}

TEST(Boot, ReservesRoomForVfs) {
  EXPECT_THAT(devices(plan_of(lane_machine()), "pcie-root-port").at(1),
              HasSubstr("id=port10-00-0,bus=root10,addr=00.0,chassis=2,slot=2,mem-reserve=32M,"
                        "pref64-reserve=128M"));
  EXPECT_THAT(devices(plan_of("h200x8"), "pcie-root-port"), Each(Not(HasSubstr("reserve"))));
}

TEST(Boot, TellsSerialNumbersAsConfigurationSpaceHasThem) {
  EXPECT_THAT(devices(plan_of("h200"), "gantry-gpu").front(),
              HasSubstr(",serial-number=0x04561449d92db048"));
  EXPECT_THAT(devices(plan_of("t4x4"), "gantry-gpu"), Each(Not(HasSubstr("serial-number"))));
}

TEST(Boot, CanLeaveOutTheIommu) {
  EXPECT_FALSE(devices(plan_of("h200"), "intel-iommu").empty());
  EXPECT_TRUE(devices(plan_of("h200", {.iommu = false}), "intel-iommu").empty());
}

TEST(Boot, AddsParametersOfTheKernelAfterItsOwn) {
  EXPECT_THAT(plan_of("h200", {.kernel_parameters = "intel_iommu=off"}).qemu,
              ::testing::Contains(::testing::EndsWith(" intel_iommu=on intel_iommu=off")));
}

TEST(Boot, KeepsChangesOnADisk) {
  const auto plan = plan_of("h200", {.disk = "/my/disk"});
  EXPECT_THAT(plan.qemu, ::testing::Contains("if=none,id=changes,format=raw,file=/my/disk"));
  EXPECT_EQ(devices(plan, "virtio-blk-pci").size(), 1U);
  EXPECT_TRUE(devices(plan_of("h200"), "virtio-blk-pci").empty());
}

TEST(Boot, PutsRootBusesOnTheirNumaNodes) {
  EXPECT_THAT(devices(plan_of("t4x4"), "pxb-pcie"),
              ::testing::ElementsAre(HasSubstr("bus_nr=0x37,numa_node=0"),
                                     HasSubstr("bus_nr=0xac,numa_node=1")));
  // The description of this one has lost the nodes.
  EXPECT_THAT(devices(plan_of("numa"), "pxb-pcie"), Each(Not(HasSubstr("numa_node"))));
}

TEST(Boot, LeavesOutFunctionsOfOtherVendors) {
  const auto plan = plan_of_text(
      "  - {address: 0000:00:04.0, vendor: 0x1af4, device: 0x1042, class: 0x018000}\n"
      "  - {address: 0000:00:05.0, vendor: 0x8086, device: 0x2f04, class: 0x060400}\n");
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(devices(*plan, "gantry-gpu").empty());
  EXPECT_TRUE(devices(*plan, "pcie-root-port").empty());
}

TEST(Boot, RefusesTwoDevicesOnOneLink) {
  const auto plan = plan_of_text(
      "  - {address: 0000:00:05.0, vendor: 0x8086, device: 0x2f04, class: 0x060400}\n"
      "  - {address: 0000:01:00.0, parent: 0000:00:05.0, device: 0x1eb8, class: 0x030200}\n"
      "  - {address: 0000:01:01.0, parent: 0000:00:05.0, device: 0x1eb8, class: 0x030200}\n");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::Unsupported);
  EXPECT_THAT(plan.error().text(), StartsWith("0000:01:01.0 shares a PCIe link with another "));
}

TEST(Boot, RefusesAGpuInsideASwitch) {
  const auto plan = plan_of_text(
      "  - {address: 0000:00:05.0, vendor: 0x8086, device: 0x2f04, class: 0x060400}\n"
      "  - {address: 0000:01:00.0, parent: 0000:00:05.0, vendor: 0x10b5, device: 0x8747, class: "
      "0x060400}\n"
      "  - {address: 0000:02:00.0, parent: 0000:01:00.0, device: 0x1eb8, class: 0x030200}\n");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::Unsupported);
  EXPECT_THAT(plan.error().text(), HasSubstr("is inside a PCIe switch"));
}

TEST(Boot, GivesASlotWithoutFunctionZeroOne) {
  const auto plan = plan_of_text(
      "  - {address: 0000:00:05.1, vendor: 0x8086, device: 0x2f04, class: 0x060400}\n"
      "  - {address: 0000:01:00.0, parent: 0000:00:05.1, device: 0x1eb8, class: 0x030200}\n");
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(devices(*plan, "pcie-root-port").front(), HasSubstr(",addr=05.0,"));
}

TEST(Boot, RefusesAPathWithASeparator) {
  const auto machine = *load_machine("h200");
  for (const auto* path : {"/my parts", "/a:b", "/a,b"}) {
    const auto plan = plan_boot(machine, {.parts = path});
    ASSERT_FALSE(plan.ok()) << path;
    EXPECT_EQ(plan.error().code(), Errc::Invalid);
    EXPECT_THAT(plan.error().text(), HasSubstr("for a separator"));
  }
  EXPECT_EQ(plan_boot(machine, {.parts = "relative"}).error().code(), Errc::Invalid);
  const auto disk = plan_boot(machine, {.parts = "/parts", .disk = "/a,b"});
  ASSERT_FALSE(disk.ok());
  EXPECT_THAT(disk.error().text(), HasSubstr("use another path for --disk"));
}

TEST(Boot, TellsTheHostWhichDriverAFunctionGets) {
  EXPECT_THAT(plan_of("vfio").description, HasSubstr("\noverride 0000:01:00.0 vfio-pci\n"));
}

TEST(Boot, DescribesNoDriverWhereNoneIsLoaded) {
  const auto plan = plan_of("secure-boot");
  EXPECT_THAT(plan.description, Not(HasSubstr("driver ")));
  EXPECT_THAT(plan.qemu, Each(Not(HasSubstr("opt/gantry/modules"))));
}

TEST(Boot, DoublesCommasForQemu) {
  const auto plan = plan_of("h200", {.script = "echo a,b"});
  EXPECT_THAT(plan.qemu, ::testing::Contains("name=opt/gantry/run,string=echo a,,b"));
}

TEST(Boot, PutsFurtherArgumentsAtTheEnd) {
  EXPECT_EQ(plan_of("h200", {.more = {"-monitor", "none"}}).qemu.back(), "none");
}

}  // namespace
}  // namespace gantry::sim
