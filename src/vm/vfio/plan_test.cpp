// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/plan.hpp"

#include "gpu/model/inventory_json.hpp"
#include "vm/vfio/host_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::vfio {
namespace {

using test_host::at;
using test_host::kGpu;
using test_host::kSound;
using test_host::kTwin;
using test_host::TestHost;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

Plan plan_of(const TestHost& machine, std::vector<std::string> gpus = {kGpu},
             bool nvswitches = false) {
  const auto state = read_machine_state(machine.host());
  EXPECT_TRUE(state.ok()) << state.error().text();
  PassthroughRequest request{.with_nvswitches = nvswitches};
  for (const auto& gpu : gpus) request.targets.push_back(at(gpu));
  return plan_passthrough(*state, request);
}

std::vector<std::string> addresses(const Plan& plan) {
  std::vector<std::string> names;
  for (const auto& function : plan.functions) names.push_back(function.address.sysfs());
  return names;
}

auto found(FindingCode code, std::string_view text, std::string_view remedy = "") {
  return testing::Contains(AllOf(Field(&Finding::code, code),
                                 Field(&Finding::text, HasSubstr(std::string(text))),
                                 Field(&Finding::remedy, HasSubstr(std::string(remedy)))));
}

TEST(Plan, TakesAllFunctionsOfTheSlotAndTheGpuLast) {
  const TestHost machine;
  const auto plan = plan_of(machine);
  EXPECT_THAT(plan.findings, IsEmpty());
  EXPECT_THAT(addresses(plan), ElementsAre(kSound, kGpu));
  EXPECT_THAT(plan.groups, ElementsAre(12));
  EXPECT_EQ(plan.functions[0].to_driver, "vfio-pci");
  EXPECT_FALSE(plan.blocked() || plan.in_use() || plan.complete());
}

TEST(Plan, TakesEveryConsumerAndTheConsumersOfThose) {
  TestHost machine;
  machine.add({.address = "0000:3c:00.0", .class_code = "0x0c0330", .driver = "", .group = 30});
  machine.add({.address = "0000:3d:00.0", .class_code = "0x0c8000", .driver = "", .group = 31});
  const std::string links = "sys/devices/pci0000:00/";
  machine.file(links + kGpu + "/consumer:pci:0000:3c:00.0/status", "active\n");
  machine.file(links + "0000:3c:00.0/consumer:pci:0000:3d:00.0/status", "active\n");
  const auto plan = plan_of(machine);
  EXPECT_THAT(addresses(plan), ElementsAre("0000:3d:00.0", "0000:3c:00.0", kSound, kGpu));
  EXPECT_THAT(plan.groups, ElementsAre(12, 30, 31));
}

TEST(Plan, AForeignDeviceInTheGroupIsNamed) {
  TestHost machine;
  machine.add({.address = "0000:3b:08.0",
               .device = "0x1017",
               .class_code = "0x020000",
               .driver = "mlx5_core",
               .vendor = "0x15b3"});
  const auto plan = plan_of(machine);
  EXPECT_TRUE(plan.blocked());
  EXPECT_THAT(plan.findings,
              found(FindingCode::GroupNotViable,
                    "IOMMU group 12 also has 0000:3b:08.0 (device, driver mlx5_core)", "ACS"));
}

TEST(Plan, AnUnboundNeighbourLeavesTheGroupViable) {
  TestHost machine;
  machine.add({.address = "0000:3b:08.0", .driver = ""});
  EXPECT_FALSE(plan_of(machine).blocked());
}

TEST(Plan, ANeighbourOnNvidiaDoesNotUnlessItGoesToo) {
  TestHost machine;
  machine.add({.address = "0000:3b:08.0"});
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::GroupNotViable, "0000:3b:08.0 (GPU, driver nvidia)",
                    "gantry vfio plan 0000:3b:00.0 0000:3b:08.0"));
  EXPECT_FALSE(plan_of(machine, {kGpu, "0000:3b:08.0"}).blocked());
}

TEST(Plan, ThreeSentencesForAMissingIommu) {
  TestHost machine;
  machine.tree().remove("sys/class/iommu/dmar0");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::NoKernelIommu, "the kernel does not use it", "intel_iommu=on"));
  machine.file("proc/cmdline", "root=/dev/sda1 intel_iommu=off\n");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::NoKernelIommu, "intel_iommu=off", "remove intel_iommu=off"));
  machine.tree().remove("sys/firmware/acpi/tables/DMAR");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::NoFirmwareIommu, "the firmware offers no IOMMU", "VT-d"));
  machine.file("proc/cpuinfo", "flags : fpu hypervisor\n");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::GuestWithoutIommu, "itself a virtual machine", "intel-iommu"));
}

// The kernel knows no amd_iommu=on: a reboot with it would be in vain.
TEST(Plan, AnAmdMachineNeedsNoParameter) {
  TestHost machine;
  machine.tree().remove("sys/class/iommu/dmar0");
  machine.file("proc/cpuinfo", "vendor_id : AuthenticAMD\nflags : fpu svm\n");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::NoKernelIommu, "the kernel does not use it", "dmesg"));
}

TEST(Plan, AFunctionThatTheIommuDoesNotCover) {
  TestHost machine;
  machine.add({.address = "0000:65:00.0", .group = -1});
  EXPECT_THAT(plan_of(machine, {"0000:65:00.0"}).findings,
              found(FindingCode::NotBehindIommu, "0000:65:00.0 is not behind it"));
}

TEST(Plan, WithoutInterruptRemappingVfioWouldRefuse) {
  TestHost machine;
  machine.file("proc/interrupts", " 24:  0  PCI-MSI 512-edge  nvidia\n");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::NoInterruptRemapping, "does not remap interrupts"));
  machine.file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
  const auto plan = plan_of(machine);
  EXPECT_FALSE(plan.blocked());
  EXPECT_THAT(plan.findings, found(FindingCode::UnsafeInterrupts, "allow_unsafe_interrupts"));
}

TEST(Plan, NamesTheProcessAndThePodThatUseTheGpu) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0",
                  "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
                  "pod6f9c1d1e_1111_2222_3333_444444444444.slice/cri-containerd-"
                  "0123456789012345678901234567890123456789012345678901234567890123.scope\n");
  machine.tree().directory("var/log/pods/ml_train_6f9c1d1e-1111-2222-3333-444444444444");
  const auto plan = plan_of(machine);
  EXPECT_TRUE(plan.in_use());
  EXPECT_FALSE(plan.blocked());
  EXPECT_THAT(plan.findings, found(FindingCode::InUse,
                                   "pid 4711 (python3 --all) of pod ml/train has /dev/nvidia0 open",
                                   "kubectl delete pod -n ml train"));
  EXPECT_FALSE(plan_of(machine, {kTwin}).in_use());
}

TEST(Plan, AMappingCountsAfterItsDescriptorWasClosed) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/null");
  machine.file("proc/4711/maps", "7f00-7f01 rw-s 00000000 00:06 440    /dev/nvidia0\n");
  EXPECT_TRUE(plan_of(machine).in_use());
}

TEST(Plan, AProcessWithTwoNodesHoldsBothGpusAndIsNamedOnce) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia1");
  machine.tree().link("proc/4711/fd/8", "/dev/nvidia0");
  EXPECT_TRUE(plan_of(machine, {kGpu}).in_use());
  EXPECT_TRUE(plan_of(machine, {kTwin}).in_use());
  EXPECT_EQ(plan_of(machine, {kGpu, kTwin}).holders.size(), 1U);
}

TEST(Plan, TheAddressOfAFindingIsThatOfTheGpuInUse) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia1");
  const auto plan = plan_of(machine, {kGpu, kTwin});
  EXPECT_THAT(plan.findings, ElementsAre(Field(&Finding::address, at(kTwin))));
}

// snd_hda_intel waits for them as nvidia does.
TEST(Plan, AProgramThatHasTheSoundFunctionOpenIsInTheWay) {
  TestHost machine;
  machine.file(std::string("sys/devices/pci0000:00/") + kSound + "/sound/card1/controlC1/dev",
               "116:7\n");
  machine.process(812, "pipewire", "/dev/snd/controlC1");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::InUse, "pid 812 (pipewire --all) has /dev/snd/controlC1 open"));
}

TEST(Plan, ACommandOfSeveralLinesStaysOneLine) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  machine.file("proc/4711/cmdline", std::string_view("python3\0-c\0import x\nx()\0", 24));
  EXPECT_THAT(plan_of(machine).findings, found(FindingCode::InUse, "import x\\x0ax()"));
}

TEST(Plan, PersistenceAndDcgmAreStoppedInsteadOfRefused) {
  TestHost machine;
  machine.process(811, "nvidia-persistenced", "/dev/nvidia0");
  machine.process(900, "nv-hostengine", "/dev/nvidia0", "0::/system.slice/nvidia-dcgm.service\n");
  const auto plan = plan_of(machine);
  EXPECT_FALSE(plan.in_use());
  EXPECT_THAT(plan.persistence, ElementsAre(at(kGpu)));
  EXPECT_THAT(plan.services, ElementsAre("nvidia-dcgm.service"));
}

TEST(Plan, OurOwnNvmlProcessesAreNotInTheWay) {
  TestHost machine;
  machine.process(950, "gantry-nvml", "/dev/nvidia0");
  machine.file("proc/950/cmdline",
               std::string_view("/usr/lib/gantry/gantry-nvml\0watch\0001\0", 36));
  EXPECT_FALSE(plan_of(machine).in_use());
  machine.file("proc/950/cmdline", std::string_view("train-gantry-nvml\0watch\0", 24));
  EXPECT_TRUE(plan_of(machine).in_use());
}

TEST(Plan, DisplayMigAndVirtualFunctionsAreRefused) {
  TestHost machine;
  const std::string gpu = std::string("sys/devices/pci0000:00/") + kGpu;
  machine.file(gpu + "/boot_vga", "1\n").file(gpu + "/sriov_totalvfs", "16\n");
  machine.file(gpu + "/sriov_numvfs", "1\n");
  machine.file("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
  const auto plan = plan_of(machine);
  EXPECT_THAT(plan.findings, found(FindingCode::Display, "drives the console"));
  EXPECT_THAT(plan.findings, found(FindingCode::VfsEnabled, "has 1 virtual function enabled"));
  EXPECT_THAT(plan.findings,
              found(FindingCode::MigInstances, "in MIG mode", "nvidia-smi -i 0000:3b:00.0 -mig 0"));
}

// Only NVML shows it, so it comes from the inventory that an agent or `gantry cdi refresh` wrote.
TEST(Plan, MigModeWithoutInstancesIsAWarning) {
  TestHost machine;
  const auto state = read_machine_state(machine.host());
  ASSERT_TRUE(state.ok());
  model::Inventory inventory;
  inventory.gpus.resize(1);
  inventory.links.assign(1, std::vector<model::Link>(1));
  inventory.gpus[0].uuid = state->driver_gpu(at(kGpu))->uuid;
  inventory.gpus[0].mig.current = model::MigMode::Enabled;
  machine.file("run/gantry/inventory.json", model::to_json(inventory));
  const auto plan = plan_of(machine);
  EXPECT_FALSE(plan.blocked());
  EXPECT_THAT(plan.findings, found(FindingCode::MigMode, "in MIG mode without instances",
                                   "sudo nvidia-smi -i 0000:3b:00.0 -mig 0"));
  EXPECT_THAT(plan_of(machine, {kTwin}).findings, IsEmpty());
  machine.file("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
  EXPECT_TRUE(plan_of(machine).blocked()) << "with instances it is refused";
  machine.tree().remove("proc/driver/nvidia/capabilities");
  inventory.gpus[0].mig.current = model::MigMode::Disabled;
  machine.file("run/gantry/inventory.json", model::to_json(inventory));
  EXPECT_THAT(plan_of(machine).findings, IsEmpty());
  machine.file("run/gantry/inventory.json", "{");
  EXPECT_THAT(plan_of(machine).findings, IsEmpty()) << "a damaged file says nothing";
}

TEST(Plan, AProcessThatHasTheDriverOpenButNoGpuIsAWarning) {
  TestHost machine;
  machine.file("dev/nvidiactl", "").file("dev/nvidia-uvm", "");
  machine.process(4711, "python3", "/dev/nvidiactl");
  machine.tree().link("proc/4711/fd/8", "/dev/nvidia-uvm");
  machine.process(4712, "python3", "/dev/nvidia1");
  machine.tree().link("proc/4712/fd/8", "/dev/nvidiactl");  // it uses the other GPU
  machine.process(811, "nvidia-persistenced", "/dev/nvidiactl");
  const auto plan = plan_of(machine);
  EXPECT_FALSE(plan.blocked() || plan.in_use());
  ASSERT_EQ(plan.findings.size(), 1U);
  EXPECT_EQ(plan.findings[0].severity, Severity::Warning);
  EXPECT_THAT(plan.findings, found(FindingCode::DriverOpen, "pid 4711 (python3 --all) has /dev/nv",
                                   "sudo kill 4711"));
  EXPECT_THAT(plan.findings,
              found(FindingCode::DriverOpen, "open and no GPU yet: it may open 0000:3b:00.0"));
}

// Mediated devices on the GPU itself, as a T4 has them: no virtual function tells of them.
TEST(Plan, VgpusWouldVanishWithTheDriver) {
  TestHost machine;
  machine.tree().link(std::string("sys/devices/pci0000:00/") + kGpu +
                          "/83b8f4f2-509f-482f-8c1e-e6bfe0fa1001/mdev_type",
                      "../mdev_supported_types/nvidia-222");
  machine.tree().directory(std::string("sys/devices/pci0000:00/") + kGpu +
                           "/mdev_supported_types/nvidia-222");
  EXPECT_THAT(plan_of(machine).findings,
              found(FindingCode::HasVgpus, "has 1 vGPU, which would vanish",
                    "gantry vgpu remove --all --gpu 0000:3b:00.0"));
}

TEST(Plan, AVirtualFunctionGoesAloneUnlessTheDriverGivesItToVfio) {
  TestHost machine;
  machine.add({.address = "0000:3b:00.4", .device = "0x2238", .driver = "", .group = 40});
  const std::string vf = "sys/devices/pci0000:00/0000:3b:00.4/";
  machine.tree().link(vf + "physfn", "/sys/devices/pci0000:00/0000:3b:00.0");
  EXPECT_THAT(addresses(plan_of(machine, {"0000:3b:00.4"})), ElementsAre("0000:3b:00.4"));
  EXPECT_THAT(addresses(plan_of(machine)), ElementsAre(kSound, kGpu));
  machine.file(vf + "nvidia/current_vgpu_type", "0\n");
  EXPECT_THAT(plan_of(machine, {"0000:3b:00.4"}).findings,
              found(FindingCode::VendorVfio, "must stay with the driver nvidia"));
}

TEST(Plan, ChoosesTheVariantDriverByModalias) {
  TestHost machine;
  machine.file("lib/modules/6.1.0-21-amd64/modules.alias",
               "alias pci:v000010DEd*sv*sd*bc03sc02i00* nvidia\n"
               "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
               "alias vfio_pci:v000010ded00002236sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci\n");
  const auto plan = plan_of(machine);
  EXPECT_EQ(plan.functions[0].to_driver, "vfio-pci");
  EXPECT_EQ(plan.functions[1].to_driver, "nvgrace_gpu_vfio_pci");
}

TEST(Plan, TakesNvSwitchesOnlyOnRequest) {
  TestHost machine;
  machine.add(
      {.address = "0000:c1:00.0", .class_code = "0x068000", .driver = "nvidia", .group = 50});
  EXPECT_THAT(addresses(plan_of(machine)), ElementsAre(kSound, kGpu));
  EXPECT_THAT(addresses(plan_of(machine, {kGpu}, true)), ElementsAre(kSound, kGpu, "0000:c1:00.0"));
}

TEST(Plan, ADriverThatDoesNotAnswerBlocks) {
  const TestHost machine;
  auto state = read_machine_state(machine.host());
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->gpus.at(0).address, at(kGpu));
  state->gpus[0] = {.address = at(kGpu), .uuid = {}, .minor = {}};
  state->gpus[0].silent = true;
  const auto plan = plan_passthrough(*state, {.targets = {at(kGpu)}});
  EXPECT_TRUE(plan.blocked());
  EXPECT_THAT(plan.findings, found(FindingCode::Stuck, "does not answer"));
  EXPECT_FALSE(plan_passthrough(*state, {.targets = {at(kTwin)}}).blocked());
}

TEST(Plan, WarnsOfAMissingReset) {
  TestHost machine;
  machine.tree().remove(std::string("sys/devices/pci0000:00/") + kGpu + "/reset");
  const auto plan = plan_of(machine);
  EXPECT_FALSE(plan.blocked());
  EXPECT_THAT(plan.findings, found(FindingCode::NoReset, "cannot reset"));
}

TEST(Plan, AKernelWithoutTheModuleOrTheOverrideIsRefused) {
  TestHost machine;
  machine.file("lib/modules/6.1.0-21-amd64/modules.dep", "kernel/net/x.ko:\n");
  machine.tree().remove(std::string("sys/devices/pci0000:00/") + kGpu + "/driver_override");
  const auto plan = plan_of(machine);
  EXPECT_THAT(plan.findings, found(FindingCode::NoVfioModule, "no module vfio-pci"));
  EXPECT_THAT(plan.findings, found(FindingCode::NoDriverOverride, "new_id"));
}

TEST(FindGpu, AcceptsAddressUuidAndIndex) {
  TestHost machine;
  const auto state = read_machine_state(machine.host());
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(*find_gpu(*state, "3b:00.0"), at(kGpu));
  EXPECT_EQ(*find_gpu(*state, "GPU-10000000-1111-2222-3333-444444444444"), at(kTwin));
  EXPECT_EQ(*find_gpu(*state, "1"), at(kTwin));
  const auto wrong = find_gpu(*state, kSound);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code(), Errc::Invalid);
  EXPECT_THAT(wrong.error().text(), HasSubstr("is not an NVIDIA GPU but audio"));
  EXPECT_EQ(find_gpu(*state, "GPU-wrong").error().code(), Errc::NotFound);
  EXPECT_EQ(find_gpu(*state, "0000:99:00.0").error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::vfio
