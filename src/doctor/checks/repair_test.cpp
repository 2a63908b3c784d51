// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/repair.hpp"

#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/machine_for_test.hpp"
#include "support/recording_kernel.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RepairReport run(TestMachine& patient, sys::Kernel& kernel, const FixOptions& options,
                 const CheckSelection& selection = {}) {
  const auto host = patient.host();
  return repair(
      host, [&] { return patient.inventory; }, patient.sources, *select(all_checks(), selection),
      options, kernel);
}

const FixReport* report_of(const RepairReport& result, std::string_view id) {
  const auto found = std::find_if(result.fixes.begin(), result.fixes.end(),
                                  [&](const FixReport& fix) { return fix.check->id == id; });
  return found == result.fixes.end() ? nullptr : &*found;
}

TEST(RepairReport, TouchesNothingOnAHealthyMachine) {
  TestMachine patient;
  test::RecordingKernel kernel;
  const auto result = run(patient, kernel, {});
  EXPECT_THAT(result.fixes, IsEmpty());
  EXPECT_THAT(kernel.done, IsEmpty());
}

TEST(RepairReport, MakesMissingNodesAsTheDriversParametersSay) {
  TestMachine patient;
  patient.no_node("/dev/nvidia0").no_node("/dev/nvidia-uvm");
  patient.param("DeviceFileGID", "33").param("DeviceFileMode", "432");
  test::RecordingKernel kernel;
  run(patient, kernel, {}, {.only = {"node.missing", "node.uvm"}, .skip = {}});
  EXPECT_THAT(kernel.done, ElementsAre("mknod /dev/nvidia0 c 195 0 0660 0 33",
                                       "mknod /dev/nvidia-uvm c 238 0 0660 0 33"));
}

TEST(RepairReport, LeavesNodesAloneWhenTheDriverParameterForbidsThem) {
  TestMachine patient;
  patient.no_node("/dev/nvidia0").param("ModifyDeviceFiles", "0");
  test::RecordingKernel kernel;
  const auto result = run(patient, kernel, {});
  EXPECT_THAT(kernel.done, IsEmpty());
  EXPECT_EQ(report_of(result, "node.missing")->state, FixState::ByHand);
}

TEST(RepairReport, ReplacesANodeWithStaleNumbers) {
  TestMachine patient;
  patient.node("/dev/nvidia-uvm", "c 243 0 0666 0 0");
  test::RecordingKernel kernel;
  run(patient, kernel, {});
  EXPECT_THAT(kernel.done, ElementsAre("mknod /dev/nvidia-uvm c 238 0 0666 0 0"));
}

TEST(RepairReport, GivesAnUnusableNodeItsModeBack) {
  TestMachine patient;
  patient.node("/dev/nvidia0", "c 195 0 1232 0 0");
  test::RecordingKernel kernel;
  run(patient, kernel, {.named = {"node.mode"}, .ask = nullptr},
      {.only = {"node.mode"}, .skip = {}});
  EXPECT_THAT(kernel.done, ElementsAre("chmod 0666 /dev/nvidia0"));
}

TEST(RepairReport, MakesTheDirectoryBeforeTheCapabilityNodes) {
  TestMachine patient;
  patient.no_node("/dev/nvidia-caps/nvidia-cap1").gpu().mig.current = model::MigMode::Enabled;
  test::RecordingKernel kernel;
  run(patient, kernel, {}, {.only = {"node.capabilities"}, .skip = {}});
  EXPECT_THAT(kernel.done, ElementsAre("mkdir /dev/nvidia-caps",
                                       "mknod /dev/nvidia-caps/nvidia-cap1 c 241 1 0400 0 0",
                                       "mknod /dev/nvidia-caps/nvidia-cap2 c 241 2 0444 0 0"));
}

TEST(RepairReport, LoadsTheModuleAndWakesASleepingGpu) {
  TestMachine unloaded;
  unloaded.unloaded().tree.file("lib/modules/6.18.2/kernel/drivers/video/nvidia.ko");
  test::RecordingKernel kernel;
  run(unloaded, kernel, {}, {.only = {"module.*"}, .skip = {}});
  EXPECT_THAT(kernel.done, ElementsAre("modprobe nvidia"));

  TestMachine asleep;
  asleep.pci("power/control", "auto").pci("power_state", "D3cold");
  kernel.done.clear();
  run(asleep, kernel, {});
  EXPECT_THAT(kernel.done, ElementsAre("write /sys/bus/pci/devices/0000:00:06.0/power/control on"));
}

TEST(RepairReport, DoesNotLoadTheModuleWhileNouveauIsThere) {
  TestMachine patient;
  patient.unloaded().function().driver = "nouveau";
  patient.tree.directory("sys/module/nouveau");
  test::RecordingKernel kernel;
  const auto result = run(patient, kernel, {});
  EXPECT_THAT(kernel.done, IsEmpty());
  EXPECT_EQ(report_of(result, "pci.nouveau")->state, FixState::NotNamed);
}

TEST(RepairReport, DoesARiskyOneOnlyWhenItIsNamed) {
  TestMachine patient;
  patient.gpu().compute_mode = "Exclusive_Process";
  test::RecordingKernel kernel;
  auto result = run(patient, kernel, {});
  EXPECT_THAT(kernel.done, IsEmpty());
  EXPECT_EQ(report_of(result, "gpu.compute-mode")->state, FixState::NotNamed);
  EXPECT_THAT(report_of(result, "gpu.compute-mode")->text, HasSubstr("--fix=gpu.compute-mode"));

  result = run(patient, kernel, {.named = {"gpu.compute-mode"}, .ask = nullptr});
  EXPECT_EQ(kernel.done.size(), 1U);
  EXPECT_THAT(kernel.done.front(), HasSubstr("nvidia-smi -i 0 -c 0"));
  EXPECT_EQ(report_of(result, "gpu.compute-mode")->state, FixState::Done);
}

TEST(RepairReport, AsksAPersonAboutARiskyOneByItsName) {
  TestMachine patient;
  patient.gpu().compute_mode = "Exclusive_Process";
  test::RecordingKernel kernel;
  std::vector<std::string> asked;
  const auto no = [&](const CheckResult& outcome, const std::vector<Action>&) {
    asked.emplace_back(outcome.check->id);
    return false;
  };
  const auto result = run(patient, kernel, {.named = {}, .ask = no});
  EXPECT_THAT(asked, ElementsAre("gpu.compute-mode"));
  EXPECT_EQ(report_of(result, "gpu.compute-mode")->state, FixState::Declined);
  EXPECT_THAT(kernel.done, IsEmpty());
}

TEST(RepairReport, NeverDoesWhatOnlyAPersonMay) {
  TestMachine patient;
  patient.inventory.functions.clear();
  test::RecordingKernel kernel;
  const auto result = run(patient, kernel, {.named = {"pci.present"}, .ask = nullptr});
  EXPECT_EQ(report_of(result, "pci.present")->state, FixState::ByHand);
  EXPECT_THAT(kernel.done, IsEmpty());
}

TEST(RepairReport, ChangesWhatIsOnlyInformationWhenItIsNamed) {
  TestMachine patient;
  test::RecordingKernel kernel;
  run(patient, kernel, {.named = {"numa.unknown"}, .ask = nullptr});
  EXPECT_THAT(kernel.done, ElementsAre("write /sys/bus/pci/devices/0000:00:06.0/numa_node 0"));
}

TEST(RepairReport, ReportsAFailedStepAndStopsThere) {
  TestMachine patient;
  patient.no_node("/dev/nvidia0").no_node("/dev/nvidiactl");
  test::RecordingKernel kernel;
  kernel.fail = true;
  const auto result = run(patient, kernel, {}, {.only = {"node.missing"}, .skip = {}});
  const auto* fix = report_of(result, "node.missing");
  EXPECT_EQ(fix->state, FixState::Failed);
  ASSERT_EQ(fix->steps.size(), 1U);
  EXPECT_THAT(fix->steps.front().error, HasSubstr("refused"));
  EXPECT_EQ(fix->after, Verdict::Fail);
}

TEST(RepairReport, TellsWhoIsNotRootToBeRoot) {
  TestMachine patient;
  patient.no_node("/dev/nvidia0");
  patient.sources.caller.uid = 1000;
  test::RecordingKernel kernel;
  kernel.fail = true;
  const CheckSelection only{.only = {"node.missing"}, .skip = {}};
  EXPECT_THAT(report_of(run(patient, kernel, {}, only), "node.missing")->text,
              HasSubstr("; as root: sudo " + fix_command(patient.host(), "")));
  patient.sources.caller.uid = 0;
  EXPECT_THAT(report_of(run(patient, kernel, {}, only), "node.missing")->text,
              ::testing::Not(HasSubstr("sudo")));
}

TEST(RepairReport, RunsNoProgramOfATreeThatIsNotThisMachine) {
  TestMachine patient;
  patient.gpu().persistence = false;
  test::RecordingKernel kernel;
  run(patient, kernel, {.named = {"persistence.off"}, .ask = nullptr});
  EXPECT_THAT(kernel.done, Contains("run nvidia-smi -pm 1"));

  kernel.done.clear();
  patient.sources.this_machine = false;
  const auto result = run(patient, kernel, {.named = {"persistence.off"}, .ask = nullptr});
  EXPECT_THAT(kernel.done, IsEmpty());
  EXPECT_EQ(report_of(result, "persistence.off")->state, FixState::ByHand);
  EXPECT_THAT(report_of(result, "persistence.off")->text, HasSubstr("is not this machine"));
}

TEST(RepairReport, LoadsNoModuleForATreeThatIsNotThisMachine) {
  TestMachine patient;
  patient.unloaded();
  test::RecordingKernel kernel;
  patient.sources.this_machine = false;
  run(patient, kernel, {}, {.only = {"module.*"}, .skip = {}});
  EXPECT_THAT(kernel.done, IsEmpty());
}

// The same node twice: one remedy creates it again, with the right mode.
TEST(RepairReport, DoesNotAskForByHandWhatAnotherRemedyHasDone) {
  if (::geteuid() != 0) GTEST_SKIP() << "making device nodes needs root";
  TestMachine patient;
  patient.no_node("/dev/nvidia0").no_node("/dev/nvidiactl");
  const auto kernel = sys::real_kernel();
  const auto host = patient.host();
  const sys::FileInfo wrong{
      .kind = sys::FileKind::CharDevice, .mode = 0232, .major = 195, .minor = 9};
  if (!kernel->make_char_device(host, "/dev/nvidia0", wrong).ok()) GTEST_SKIP() << "no mknod here";
  const auto result = repair(
      host, [&] { return patient.inventory; }, patient.sources,
      *select(all_checks(), {.only = {"node.missing", "node.numbers", "node.mode"}, .skip = {}}),
      {}, *kernel);
  ASSERT_NE(report_of(result, "node.numbers"), nullptr);
  EXPECT_EQ(report_of(result, "node.numbers")->after, Verdict::Ok);
  EXPECT_EQ(report_of(result, "node.mode"), nullptr);
}

TEST(RepairReport, WritesTheToolkitsUserWhereAGroupHasTheNodes) {
  TestMachine patient;
  patient.node("/dev/nvidia0", "c 195 0 0660 0 33");
  const std::string path = "/etc/nvidia-container-runtime/config.toml";
  patient.tree.file(
      path.substr(1),
      "[nvidia-container-cli]\n#user = \"root:video\"\nldconfig = \"@/sbin/ldconfig\"\n"
      "[other]\nuser = \"x\"\n");
  patient.sources.this_machine = false;
  test::RecordingKernel kernel;
  const FixOptions named{.named = {"node.group"}, .ask = nullptr};
  const auto result = run(patient, kernel, named, {.only = {"node.group"}, .skip = {}});
  EXPECT_EQ(report_of(result, "node.group")->state, FixState::Done);
  EXPECT_EQ(kernel.files[path],
            "[nvidia-container-cli]\nuser = \"root:video\"\nldconfig = \"@/sbin/ldconfig\"\n"
            "[other]\nuser = \"x\"\n");
  patient.tree.remove(path.substr(1));
  run(patient, kernel, named, {.only = {"node.group"}, .skip = {}});
  EXPECT_EQ(kernel.files[path], "[nvidia-container-cli]\nuser = \"root:video\"\n");
}

TEST(RepairReport, WritesTheFilesOfAnotherTreeAndLeavesItsProgramsToIt) {
  TestMachine patient;
  patient.unloaded().function().driver = "nouveau";
  patient.tree.directory("sys/module/nouveau").file("usr/sbin/update-initramfs");
  patient.sources.this_machine = false;
  test::RecordingKernel kernel;
  const auto result = run(patient, kernel, {.named = {"pci.nouveau"}, .ask = nullptr});
  EXPECT_THAT(kernel.done, ElementsAre("file /etc/modprobe.d/nvidia-no-nouveau.conf"));
  EXPECT_EQ(kernel.files["/etc/modprobe.d/nvidia-no-nouveau.conf"],
            "blacklist nouveau\noptions nouveau modeset=0\n");
  const auto* fix = report_of(result, "pci.nouveau");
  EXPECT_EQ(fix->state, FixState::Partly);
  EXPECT_THAT(fix->text, HasSubstr("sudo update-initramfs -u && sudo modprobe -r nouveau"));
}

TEST(RepairReport, TellsTheKernelWhereTheDriversFirmwareIs) {
  TestMachine patient;
  patient.tree.file("sys/module/firmware_class/parameters/path", "\n");
  test::RecordingKernel kernel;
  run(patient, kernel, {}, {.only = {"module.firmware"}, .skip = {}});
  EXPECT_THAT(kernel.done, ElementsAre("write /sys/module/firmware_class/parameters/path "
                                       "/usr/local/nvidia/firmware"));
}

TEST(RepairReport, ResetsAGpuOnlyWhileNoProgramIsOnIt) {
  TestMachine patient;
  patient.gpu().mig.pending = model::MigMode::Enabled;
  const FixOptions named{.named = {"mig.pending"}, .ask = nullptr};
  test::RecordingKernel kernel;
  run(patient, kernel, named);
  EXPECT_THAT(kernel.done, ElementsAre("run nvidia-smi --gpu-reset -i 0"));
  kernel.done.clear();
  patient.gpu().processes.push_back({.pid = 1});
  const auto result = run(patient, kernel, named);
  EXPECT_THAT(kernel.done, IsEmpty());
  EXPECT_THAT(report_of(result, "mig.pending")->text, HasSubstr("a reset would kill them"));
}

TEST(RepairReport, BindsTheCardsOwnFunctionsForAVmButNoNeighbour) {
  for (const char* member : {"0000:00:06.1", "0000:00:09.0"}) {
    TestMachine patient;
    patient.metal().function().driver = "vfio-pci";
    patient.function().iommu_group = 12;
    patient.tree.directory("sys/kernel/iommu_groups/12/devices/" + std::string(member))
        .link("sys/bus/pci/devices/" + std::string(member) + "/driver", "../../drivers/snd");
    test::RecordingKernel kernel;
    run(patient, kernel, {.named = {"iommu.group"}, .ask = nullptr},
        {.only = {"iommu.group"}, .skip = {}});
    EXPECT_EQ(kernel.done.size(), member == std::string("0000:00:06.1") ? 3U : 0U) << member;
  }
}

TEST(RepairReport, RewritesAModeThatWasMeantAsOctal) {
  TestMachine patient;
  patient.param("DeviceFileMode", "666");
  patient.tree.file("etc/modprobe.d/nvidia.conf",
                    "# ours\noptions nvidia NVreg_DeviceFileMode=666 NVreg_DeviceFileGID=0\n");
  test::RecordingKernel kernel;
  run(patient, kernel, {.named = {"node.mode-option"}, .ask = nullptr},
      {.only = {"node.mode-option"}, .skip = {}});
  EXPECT_EQ(kernel.files["/etc/modprobe.d/nvidia.conf"],
            "# ours\noptions nvidia NVreg_DeviceFileMode=438 NVreg_DeviceFileGID=0\n");
}

TEST(RepairReport, ChoosesTheNumaNodeOfTheBridgeAboveAndGuessesNone) {
  TestMachine patient;
  patient.tree.file("sys/devices/system/node/online", "0-1\n");
  test::RecordingKernel kernel;
  const FixOptions named{.named = {"numa.unknown"}, .ask = nullptr};
  run(patient, kernel, named, {.only = {"numa.unknown"}, .skip = {}});
  EXPECT_THAT(kernel.done, IsEmpty());
  patient.tree.remove("sys/bus/pci/devices/0000:00:06.0")
      .file("sys/devices/pci0000:00/0000:00:01.0/numa_node", "1\n")
      .file("sys/devices/pci0000:00/0000:00:01.0/0000:00:06.0/numa_node", "-1\n")
      .link("sys/bus/pci/devices/0000:00:06.0",
            "../../../devices/pci0000:00/0000:00:01.0/0000:00:06.0");
  run(patient, kernel, named, {.only = {"numa.unknown"}, .skip = {}});
  EXPECT_THAT(kernel.done, ElementsAre("write /sys/bus/pci/devices/0000:00:06.0/numa_node 1"));
}

// Shell expansion is a person's: an action holds exact words.
TEST(RepairReport, HasNoShellInItsActions) {
  for (const auto* check : all_checks()) {
    if (check->fix == nullptr) continue;
    TestMachine patient;
    const auto host = patient.host();
    for (const auto& action : check->fix(Facts(host, patient.inventory, patient.sources))) {
      EXPECT_THAT(describe(action), ::testing::Not(HasSubstr("&&"))) << check->id;
    }
  }
}

TEST(RepairReport, LooksAgainAndFindsTheNodesThatItMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "making device nodes needs root";
  TestMachine patient;
  patient.no_node("/dev/nvidia0").no_node("/dev/nvidiactl").param("DeviceFileMode", "432");
  const auto kernel = sys::real_kernel();
  const auto result = run(patient, *kernel, {}, {.only = {"node.missing"}, .skip = {}});
  const auto* fix = report_of(result, "node.missing");
  ASSERT_NE(fix, nullptr);
  if (fix->state == FixState::Failed) GTEST_SKIP() << fix->steps.front().error;
  EXPECT_EQ(fix->after, Verdict::Ok);
  const auto node = patient.host().device("/dev/nvidia0");
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->major, 195U);
  EXPECT_EQ(node->mode, 0660U);
}

}  // namespace
}  // namespace gantry::doctor
