// SPDX-License-Identifier: Apache-2.0
// Every check on a machine where it is broken and on one where it is not.
#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/machine_for_test.hpp"
#include "doctor/engine/repair.hpp"
#include "doctor/engine/run_checks.hpp"
#include "doctor/engine/tally.hpp"
#include "support/recording_kernel.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part :
       {hardware_cases(), vgpu_cases(), module_cases(), gpu_cases(), node_cases(), userland_cases(),
        runtime_cases(), cluster_cases(), share_cases(), ownership_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

bool is_bad(Verdict verdict) {
  return verdict == Verdict::Info || verdict == Verdict::Warn || verdict == Verdict::Fail;
}

// A word that a person would have to replace, not a variable of the shell.
bool has_placeholder(std::string_view text) {
  constexpr std::array kWords{"INDEX", "NODE",   "BDF",    "DIRECTORY", "PATH",        "MOUNTPOINT",
                              "POD",   "BRIDGE", "DRIVER", "VERSION",   "ONE_OF_THEM", "PROFILE"};
  const auto part_of_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '_' || text[at] == '$');
  };
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    const auto at = text.find(word);
    return at != std::string_view::npos && !(at > 0 && part_of_word(at - 1)) &&
           !part_of_word(at + word.size());
  });
}

class OneCheck : public ::testing::TestWithParam<Case> {};

TEST_P(OneCheck, JudgesThisMachineRight) {
  const auto& example = GetParam();
  const auto* check = find_check(example.id);
  ASSERT_NE(check, nullptr) << example.id;
  TestMachine patient;
  example.change(patient);
  const auto finding = patient.look(*check);
  EXPECT_EQ(to_string(finding.verdict), to_string(example.expected))
      << example.id << ": " << finding.summary;
  EXPECT_FALSE(finding.summary.empty());
  const bool needs_evidence = is_bad(finding.verdict) && example.id != "guest.kind";
  EXPECT_TRUE(!needs_evidence || !finding.evidence.empty());
}

TEST_P(OneCheck, PrintsValuesAndOffersOnlyWhatItDoes) {
  const auto& example = GetParam();
  if (!is_bad(example.expected)) return;
  TestMachine patient;
  example.change(patient);
  const auto host = patient.host();
  const Facts facts(host, patient.inventory, patient.sources);
  const std::vector<const Check*> checks{find_check(example.id)};
  const auto outcome = run_checks(facts, checks).front();
  EXPECT_FALSE(has_placeholder(outcome.remedy())) << outcome.remedy();
  test::RecordingKernel kernel;
  const auto result = repair(
      host, [&] { return patient.inventory; }, patient.sources, checks,
      {.named = {std::string(example.id)}, .ask = nullptr}, kernel);
  ASSERT_FALSE(result.fixes.empty());
  const bool offered = outcome.offer == FixOffer::Automatic || outcome.offer == FixOffer::OnRequest;
  EXPECT_EQ(offered, result.fixes.front().state == FixState::Done) << example.id;
  EXPECT_EQ(offered, !kernel.done.empty()) << example.id;
  EXPECT_TRUE(outcome.offer != FixOffer::ByHand || !outcome.check->by_hand.empty()) << example.id;
}

std::string gpu_label(const ::testing::TestParamInfo<Case>& info) {
  std::string name(info.param.id);
  for (char& c : name) {
    if (c == '.' || c == '-') c = '_';
  }
  return name + "_" + std::string(to_string(info.param.expected)) + "_" +
         std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Cases, OneCheck, ::testing::ValuesIn(all_cases()), gpu_label);

// A kernel that enforces signatures without EFI, as small hypervisors start it.
TEST(SecureBoot, IsNotClaimedWhereOnlyTheKernelEnforcesSignatures) {
  TestMachine patient;
  patient.tree.file("sys/module/module/parameters/sig_enforce", "Y\n");
  const auto finding = patient.look(*find_check("module.secure-boot"));
  EXPECT_EQ(finding.verdict, Verdict::Ok);
  EXPECT_EQ(finding.summary, "this kernel accepts signed modules only and the module was accepted");
}

TEST(Cases, ShowEveryCheckBrokenAndWell) {
  std::map<std::string_view, std::pair<int, int>> seen;
  for (const auto& example : all_cases()) {
    auto& [bad, well] = seen[example.id];
    bad += is_bad(example.expected) ? 1 : 0;
    well += example.expected == Verdict::Ok ? 1 : 0;
  }
  for (const auto* check : all_checks()) {
    EXPECT_GT(seen[check->id].first, 0) << check->id << " is never shown broken";
    EXPECT_GT(seen[check->id].second, 0) << check->id << " is never shown well";
  }
}

TEST(Doctor, FindsNothingWrongWithAHealthyGuest) {
  TestMachine patient;
  for (const auto* check : all_checks()) {
    const auto finding = patient.look(*check);
    const bool told = check->id == "numa.unknown" || check->id == "module.refcnt";
    EXPECT_TRUE(finding.verdict == Verdict::Ok || finding.verdict == Verdict::Skip || told)
        << check->id << ": " << finding.summary;
    EXPECT_TRUE(!told || finding.verdict == Verdict::Info) << check->id;
  }
}

TEST(Numa, QuotesWhatTensorFlowSaysAndNamesTheHypervisorsSetting) {
  TestMachine patient;
  patient.tree.file("sys/class/dmi/id/sys_vendor", "VMware, Inc.\n");
  auto finding = patient.look(*find_check("numa.unknown"));
  EXPECT_THAT(finding.cause, HasSubstr("successful NUMA node read from SysFS"));
  EXPECT_THAT(finding.remedy, HasSubstr("chipset.motherboardLayout = \"acpi\""));
  patient.tree.file("sys/class/dmi/id/sys_vendor", "QEMU\n");
  EXPECT_THAT(patient.look(*find_check("numa.unknown")).remedy, HasSubstr("pxb-pcie"));
}

TEST(Bars, SaysWhatTheHostForgotWithTheSizesOfTheCards) {
  TestMachine patient;  // an H200
  patient.pci("resource",
              "0x0000104002000000 0x0000104002ffffff 0x000000000014220c\n0x0 0x0 0x0\n"
              "0x0000000000000000 0x0000003fffffffff 0x000000002014220c\n");
  patient.tree.file("sys/class/dmi/id/sys_vendor", "VMware, Inc.\n");
  const auto* check = find_check("pci.bars");
  EXPECT_THAT(
      patient.look(*check).remedy,
      ::testing::AllOf(HasSubstr("firmware = \"efi\""), HasSubstr("64bitMMIOSizeGB = \"512\"")));
  patient.tree.directory("sys/firmware/efi");
  EXPECT_THAT(patient.look(*check).remedy, ::testing::Not(HasSubstr("efi")));
  patient.tree.file("sys/class/dmi/id/sys_vendor", "QEMU\n");
  EXPECT_THAT(patient.look(*check).remedy, HasSubstr("X-PciMmio64Mb,string=524288"));
}

TEST(Group, NamesTheHelpersUserAndTheSettingThatHelps) {
  TestMachine patient;
  patient.node("/dev/nvidia0", "c 195 0 0660 0 33");
  patient.tree.file("usr/bin/nvidia-container-cli");
  const auto* check = find_check("node.group");
  EXPECT_THAT(patient.look(*check).remedy, HasSubstr("user = \"root:video\""));
  EXPECT_THAT(check->cause, HasSubstr("no cuda-capable device is detected"));
}

TEST(Offenders, AreAllNamedUpToALimit) {
  TestMachine patient;
  patient.second_gpu();
  for (auto& gpu : patient.inventory.gpus) {
    gpu.health = {model::HealthState::Lost, {"fell off the bus"}};
  }
  const auto finding = patient.look(*find_check("gpu.lost"));
  EXPECT_EQ(finding.summary, "lost: GPU 0 (0000:00:06.0) and GPU 1 (0000:00:07.0)");
  EXPECT_THAT(finding.remedy,
              HasSubstr("for d in 0 1; do sudo nvidia-smi --gpu-reset -i $d; done"));
  EXPECT_EQ(join_names({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}),
            "1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
}

TEST(Offenders, ShareOneSentenceWhereTheyHaveOneFault) {
  TestMachine patient;
  patient.second_gpu();
  for (auto& gpu : patient.inventory.gpus) {
    gpu.health = {model::HealthState::Degraded, {"the fabric is not ready"}};
  }
  auto finding = patient.look(*find_check("gpu.health"));
  EXPECT_EQ(finding.summary,
            "GPU 0 (0000:00:06.0) and GPU 1 (0000:00:07.0): the fabric is not ready");
  ASSERT_EQ(finding.evidence.size(), 1U);
  EXPECT_EQ(finding.evidence.front().source, "NVML, GPU 0 and 1");
  EXPECT_EQ(finding.remedy, "for d in 0 1; do nvidia-smi -q -i $d; done");
  patient.gpu().health.reasons = {"power brake"};
  finding = patient.look(*find_check("gpu.health"));
  EXPECT_EQ(finding.evidence.size(), 2U);
}

TEST(Links, OfALostGpuAreNotCalledBroken) {
  TestMachine patient;
  patient.second_gpu().inventory.gpus.push_back(patient.gpu());
  const model::Link whole{.nvlinks = 18, .nvswitch = true};
  patient.inventory.links = {{{}, whole, {}}, {whole, {}, {}}, {{}, {}, {}}};
  const auto* check = find_check("fabric.links");
  auto finding = patient.look(*check);
  EXPECT_EQ(finding.summary, "fewer than 18 NVLinks: GPU 0-2 and GPU 1-2");
  patient.inventory.gpus.back().health.state = model::HealthState::Lost;
  EXPECT_EQ(patient.look(*check).verdict, Verdict::Ok);
}

TEST(Xid, IsAnsweredWithACommandForItsGpu) {
  TestMachine patient;
  const auto* check = find_check("log.xid");
  patient.log("NVRM: Xid (PCI:0000:00:06): 62, pid=1, name=a, text");
  EXPECT_THAT(
      patient.look(*check).remedy,
      ::testing::StartsWith("sudo nvidia-smi --gpu-reset -i 0000:00:06.0  # reset the GPU"));
  TestMachine lost;
  lost.log("NVRM: Xid (PCI:0000:00:06): 79, GPU has fallen off the bus.");
  EXPECT_THAT(lost.look(*check).remedy, ::testing::StartsWith("sudo reboot  # "));
  TestMachine strange;
  strange.log("NVRM: Xid (PCI:$(reboot)): 62, x");
  EXPECT_THAT(strange.look(*check).remedy, ::testing::StartsWith("sudo dmesg | grep"));
}

TEST(KernelArguments, AreSetAsTheDistributionDoesIt) {
  TestMachine patient;
  patient.metal().tree.file("proc/cpuinfo", "vendor_id\t: AuthenticAMD\nflags\t: fpu\n");
  const auto* check = find_check("iommu.off");
  EXPECT_THAT(patient.look(*check).remedy,
              ::testing::StartsWith("add iommu=pt to the kernel's command line"));
  patient.tree.file("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
  EXPECT_EQ(patient.look(*check).remedy,
            "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX iommu=pt\"' | sudo tee "
            "/etc/default/grub.d/90-gantry.cfg && sudo update-grub && sudo reboot  # and enable "
            "AMD-Vi in the firmware");
  patient.tree.file("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  EXPECT_THAT(patient.look(*check).remedy, HasSubstr("grubby --update-kernel=ALL"));
  patient.tree.file("etc/os-release", "ID=\"sles\"\nID_LIKE=\"suse\"\n");
  patient.tree.file("proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: fpu\n");
  EXPECT_THAT(patient.look(*check).remedy, HasSubstr("/&intel_iommu=on iommu=pt /"));
}

// A machine with CRI-O is seldom one with apt.
TEST(MissingRuntimes, AreInstalledWithTheToolOfTheMachine) {
  TestMachine patient;
  patient.kubelet().tree.file("etc/crio/crio.conf",
                              "[crio.runtime.runtimes.nvidia]\n"
                              "runtime_path = \"/opt/ncr\"\n");
  patient.tree.file("etc/docker/daemon.json", R"({"runtimes": {"nvidia": {"path": "/opt/ncr"}}})");
  patient.tree.file("etc/containerd/config.toml",
                    "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes."
                    "nvidia.options]\nBinaryName = \"/opt/ncr\"\n");
  const auto remedies = [&] {
    return std::vector{patient.look(*find_check("crio.programs")).remedy,
                       patient.look(*find_check("docker.runtime-path")).remedy,
                       patient.look(*find_check("containerd.runtime-path")).remedy};
  };
  const auto all = [](const std::string& install) {
    return ::testing::ElementsAre(install + "sudo gantry runtime configure --runtime=crio",
                                  install + "sudo gantry runtime configure --runtime=docker",
                                  install + "sudo gantry runtime configure --runtime=containerd");
  };
  EXPECT_THAT(remedies(), all("install the package gantry, then: "));
  patient.tree.file("etc/os-release", "ID=\"sles\"\nID_LIKE=\"suse\"\n");
  EXPECT_THAT(remedies(), all("sudo zypper install gantry && "));
  patient.tree.file("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  EXPECT_THAT(remedies(), all("sudo dnf install gantry && "));
  patient.tree.file("usr/bin/zypper");  // what is installed counts more than a name
  EXPECT_THAT(remedies(), all("sudo zypper install gantry && "));
  patient.tree.file("usr/bin/apt-get");
  EXPECT_THAT(remedies(), all("sudo apt install gantry && "));
}

TEST(Mismatch, NeedsARebootWhereTheKernelCannotUnload) {
  TestMachine patient;
  patient.inventory.driver.library_version = "580.95.05";
  const auto* check = find_check("module.mismatch");
  EXPECT_EQ(patient.look(*check).remedy, "sudo reboot");  // the guest counts no users
  patient.tree.file("sys/module/nvidia/refcnt", "0\n");
  EXPECT_EQ(patient.look(*check).remedy, "");  // the row's own: modprobe -r
}

TEST(Closed, FilesOfRootAreNamedAndNotJudged) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is closed to root";
  TestMachine patient;
  patient.kubelet();
  ASSERT_EQ(::chmod(patient.tree.path("var/lib/kubelet").c_str(), 0), 0);
  const auto host = patient.host();
  const auto outcomes =
      run_checks(Facts(host, patient.inventory, patient.sources), {find_check("kubelet.socket")});
  EXPECT_EQ(outcomes.front().finding.verdict, Verdict::Skip);
  EXPECT_TRUE(outcomes.front().finding.needs_root);
  ::chmod(patient.tree.path("var/lib/kubelet").c_str(), 0755);
}

TEST(ModeOption, TranslatesTheDigitsThatWereMeantAsOctal) {
  TestMachine patient;
  patient.param("DeviceFileMode", "666");
  EXPECT_THAT(patient.look(*find_check("node.mode-option")).remedy, HasSubstr("=438"));
}

}  // namespace
}  // namespace gantry::doctor
