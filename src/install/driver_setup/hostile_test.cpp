// SPDX-License-Identifier: Apache-2.0
// Files that change while they are installed, directories and programs of other users, and what a
// machine is left with when a step fails that others do not expect to fail.
#include "install/driver_package/run_file_for_test.hpp"
#include "install/driver_setup/boot_files.hpp"
#include "install/driver_setup/effects_for_test.hpp"
#include "install/driver_setup/install.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/live_effects.hpp"
#include "install/driver_setup/machine_for_test.hpp"
#include "install/kernel_module/module_image_for_test.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace gantry::driver_setup {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::size_t position(const std::vector<std::string>& log, std::string_view entry) {
  const auto found = std::find_if(log.begin(), log.end(), [&](const std::string& line) {
    return line.find(entry) != std::string::npos;
  });
  return static_cast<std::size_t>(found - log.begin());
}

// The files of the effects alone.
class FilesOnly final : public HostFiles {
 public:
  using HostFiles::HostFiles;
  Status load_module(const std::string&, const std::string&) override { return {}; }
  Status unload_module(const std::string&) override { return {}; }
  Status write_value(const std::string&, const std::string&) override { return {}; }
  Status make_node(const std::string&, const sys::FileInfo&) override { return {}; }
  Result<std::string> run(const ProgramCall&) override { return std::string(); }
  Result<driver_package::Downloaded> download(const driver_package::DownloadRequest&) override {
    return driver_package::Downloaded{};
  }
  Status terminate(std::uint32_t) override { return {}; }
  Status refresh_cdi() override { return {}; }
  Status remove_cdi() override { return {}; }
  Status tell_agent() override { return {}; }
  void pause(std::chrono::milliseconds) override {}
};

// ---- What is executed is what was checked

TEST(HostileArchive, ThatChangesAfterItsDigestWasComputedIsNotExecuted) {
  SetupMachine machine;
  const auto request = machine.request(kNewDriver);
  machine.script.rule = [&](const std::string& entry) -> Status {
    if (entry == "mkdir /var/lib/gantry/driver-install/staging")
      machine.tree().file(
          request.run_file,
          driver_package::run_file({.version = kNewDriver, .payload = "\x28\xb5\x2f\xfd evil"}));
    return {};
  };
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(),
              AllOf(HasSubstr("was changed while it was being installed"), HasSubstr(".run")));
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("run sh"))));
}

TEST(HostileArchive, IsExecutedFromADirectoryOfOurOwn) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  EXPECT_THAT(machine.script.log,
              Contains(StartsWith("run sh /var/lib/gantry/driver-install/staging/")));
}

TEST(HostilePatch, ThatChangesAfterItsDigestWasComputedIsNotApplied) {
  SetupMachine machine;
  auto request = machine.request(kNewDriver);
  request.patch = "/root/kernel.patch";
  machine.tree().file(request.patch, "--- a/nvidia/nv.c\n+++ b/nvidia/nv.c\n@@ -1 +1 @@\n");
  machine.script.rule = [&](const std::string& entry) -> Status {
    if (entry.starts_with("run sh"))
      machine.tree().file(request.patch, "--- a/nvidia/nv.c\n+++ b/nvidia/nv.c\n@@ -1 +9 @@\n");
    return {};
  };
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("run patch"))));
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log,
              Contains(AllOf(StartsWith("run patch"), HasSubstr("driver-install/staging"))));
}

TEST(ArchiveKind, IsThatOfTheHeaderWhateverTheFilesName) {
  SetupMachine machine;
  const auto put = [&](std::string_view suffix) {
    machine.tree().file(
        fmt::format("/root/NVIDIA-Linux-x86_64-{}.run", kNewDriver),
        driver_package::run_file(
            {.version = kNewDriver,
             .target_directory = fmt::format("NVIDIA-Linux-x86_64-{}{}", kNewDriver, suffix)}));
  };
  put("-grid");
  const auto guest = machine.install(kNewDriver);
  ASSERT_FALSE(guest.ok());
  EXPECT_THAT(guest.error().text(),
              AllOf(HasSubstr("is the guest driver of vGPUs"), HasSubstr("--source grid")));
  put("-vgpu-kvm");
  const auto host = machine.install(kNewDriver);
  ASSERT_FALSE(host.ok());
  EXPECT_THAT(host.error().text(),
              HasSubstr("for containers use NVIDIA-Linux-x86_64-580.159.04.r"));
  put("");
  auto request = machine.request(kNewDriver);
  request.source = preflight::Source::Grid;
  const auto whole = machine.install(request);
  ASSERT_FALSE(whole.ok());
  EXPECT_THAT(whole.error().text(), HasSubstr("NVIDIA-Linux-x86_64-580.159.04-grid.run"));
}

// ---- Directories that others can change

TEST(TrustedPlace, ADirectoryOfAnotherUserIsRefused) {
  SetupMachine machine;
  machine.tree().directory("srv/open");
  ASSERT_EQ(::chmod(machine.tree().path("srv/open").c_str(), 0777), 0);
  auto request = machine.request(kNewDriver);
  request.directory = "/srv/open/nvidia";
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), AllOf(HasSubstr("every user can change"),
                                            HasSubstr("--directory"), HasSubstr("chmod go-w")));
  EXPECT_FALSE(machine.host().exists("/srv/open/nvidia"));
}

TEST(TrustedPlace, NoModuleIsLoadedFromADirectoryThatBecameOne) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  machine.reboot();
  ASSERT_EQ(::chmod(machine.tree().path("usr/local/nvidia").c_str(), 0777), 0);
  machine.script = {};
  const auto refused = machine.load();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("load "))));
}

TEST(HostFiles, AFifoIsNotWaitedFor) {
  test::Tree tree;
  tree.directory("in").directory("out");
  ASSERT_EQ(::mkfifo(tree.path("in/nvidia.ko").c_str(), 0600), 0);
  const auto host = tree.host();
  FilesOnly files(host);
  const auto refused = files.copy("/in/nvidia.ko", "/out/nvidia.ko", 0644);
  EXPECT_EQ(refused.error().code(), Errc::Invalid);
}

TEST(HostFiles, WhatAKilledSaveLeftGoesWithTheFile) {
  test::Tree tree;
  tree.file("etc/.unit.gantry", "half").file("etc/.other.gantry", "half");
  const auto host = tree.host();
  FilesOnly files(host);
  ASSERT_TRUE(files.save("/etc/unit", "whole", 0640).ok());
  EXPECT_EQ(*host.read("/etc/unit"), "whole");
  EXPECT_EQ(host.info("/etc/unit")->mode & 0777U, 0640U);
  ASSERT_TRUE(files.remove("/etc/other").ok());
  EXPECT_THAT(*host.list("/etc"), ElementsAre("unit"));
}

TEST(ProgramEnvironment, HasNothingThatRunsOtherCode) {
  const std::vector<const char*> ours{"PATH=.:/home/user/bin::/opt/bin",
                                      "LD_PRELOAD=/x.so",
                                      "MAKEFLAGS=-n",
                                      "CC=evil",
                                      "ENV=/x",
                                      "https_proxy=http://p:3128",
                                      "BASH_ENV=/x",
                                      "LANG=de_DE",
                                      "HOME=/home/user",
                                      "TAR_OPTIONS=x",
                                      "APT_CONFIG=/x",
                                      nullptr};
  EXPECT_THAT(environment_for_programs(ours.data()),
              ElementsAre("LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOME=/root",
                          "https_proxy=http://p:3128",
                          "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"
                          "/home/user/bin:/opt/bin"));
}

// ---- Steps that fail half-way

TEST(HalfUnloaded, ModulesOfTheOldDriverAreLoadedAgain) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry == "unload nvidia") return Error::sys(EWOULDBLOCK, "delete_module");
    return {};
  };
  const auto refused = machine.install(kNewDriver);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(machine.modules(), ElementsAre("nvidia", "nvidia_uvm"));
  machine.expect_installed(kOldDriver);
}

TEST(LastSteps, AreDoneWithoutUnloadingUnderAProcess) {
  SetupMachine machine;
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry == "refresh CDI") throw KilledForTest{};
    return {};
  };
  EXPECT_THROW(static_cast<void>(machine.install(kNewDriver).ok()), KilledForTest);
  EXPECT_TRUE(machine.has_journal());
  machine.holder(4711, "python3");
  machine.script = {};
  const auto again = machine.install(kNewDriver);
  expect_ok(again);
  EXPECT_TRUE(again->changed);
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("unload"))));
  EXPECT_GE(machine.told_agents, 1);
  machine.expect_installed(kNewDriver);
}

TEST(ReadOnlyEtc, TheDriverIsInstalledAndTheNotesSayWhatIsMissing) {
  SetupMachine machine;
  machine.script.rule = [](const std::string& entry) -> Status {
    const auto writes = entry.starts_with("save /etc/") || entry.starts_with("mkdir /etc/") ||
                        entry.starts_with("link /etc/") || entry == "run ldconfig";
    return writes ? Status(Error::sys(EROFS, entry)) : Status();
  };
  const auto report = machine.install(kNewDriver);
  expect_ok(report);
  EXPECT_EQ(machine.loaded(), kNewDriver);
  EXPECT_THAT(report->notes, AllOf(Contains(HasSubstr("LD_LIBRARY_PATH=/usr/local/nvidia/lib64")),
                                   Contains(HasSubstr("nothing loads the driver at boot"))));
  expect_ok(machine.remove());
  EXPECT_EQ(machine.loaded(), "");
}

TEST(LoaderCache, IsThatOfTheOldDriverAfterTheWayBack) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  const auto old = machine.current();
  machine.script = {};
  machine.script.rule = [&](const std::string& entry) -> Status {
    machine.smi_fails = entry.find("nvidia-smi") != std::string::npos;
    return {};
  };
  ASSERT_FALSE(machine.install(kNewDriver).ok());
  const auto& log = machine.script.log;
  const auto back = position(log, "link /usr/local/nvidia/current " + old);
  ASSERT_LT(back, log.size());
  EXPECT_THAT((std::vector(log.begin() + static_cast<std::ptrdiff_t>(back), log.end())),
              Contains("run ldconfig"));
}

TEST(LoaderConfig, IncludesDropInsInSeveralWays) {
  for (const auto* text : {"include ld.so.conf.d/*.conf\n", "include /etc/ld.so.conf.d/*.conf"}) {
    SetupMachine machine;
    machine.tree().file("etc/ld.so.conf", text);
    expect_ok(machine.install(kNewDriver));
    EXPECT_EQ(*machine.host().read("/etc/ld.so.conf"), text);
  }
  SetupMachine machine;
  machine.tree().file("etc/ld.so.conf", "#include /etc/ld.so.conf.d/*.conf\n");
  expect_ok(machine.install(kNewDriver));
  EXPECT_THAT(*machine.host().read("/etc/ld.so.conf"), HasSubstr("\n/usr/local/nvidia/lib64\n"));
}

TEST(UnfinishedWork, InAnotherDirectoryIsTakenBack) {
  SetupMachine machine;
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("load ")) throw KilledForTest{};
    return {};
  };
  EXPECT_THROW(static_cast<void>(machine.install(kNewDriver).ok()), KilledForTest);
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia"));
  machine.script = {};
  auto request = machine.request(kNewDriver);
  request.directory = "/var/lib/nvidia";
  expect_ok(machine.install(request));
  EXPECT_FALSE(machine.host().exists("/usr/local/nvidia"));
}

TEST(UnfinishedWork, OfAnotherKernelDoesNotRemoveTheModulesOfThisOne) {
  SetupMachine machine;
  machine.kernel(kOtherKernel);
  for (const auto* version : {kNewDriver, kOldDriver}) {
    expect_ok(machine.install(version));
    expect_ok(machine.build(kOtherKernel));
  }
  const auto previous = (*read_record(machine.host()))->previous;
  const Layout layout("/usr/local/nvidia");
  machine.tree().remove(layout.modules(previous, kSetupKernel));
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("run make")) throw KilledForTest{};
    return {};
  };
  EXPECT_THROW(static_cast<void>(machine.install(kNewDriver).ok()), KilledForTest);
  machine.reboot();
  machine.tree().file("proc/sys/kernel/osrelease", fmt::format("{}\n", kOtherKernel));
  machine.script = {};
  machine.smi_fails = true;
  ASSERT_FALSE(machine.install(kNewDriver).ok());
  EXPECT_TRUE(machine.host().exists(layout.modules(previous, kOtherKernel) + "/nvidia.ko"));
}

// ---- Other drivers

// Loads modules that Gantry did not install.
void load_packaged(SetupMachine& machine, const char* version) {
  machine.add_packages(version);
  const auto host = machine.host();
  TestEffects effects(host, machine);
  for (const auto* name : {"nvidia", "nvidia-uvm"})
    ASSERT_TRUE(effects.run({.words = {{.text = "modprobe"}, {.text = name}}}).ok());
  machine.script = {};
}

void load_packaged_module(SetupMachine& machine, const char* name) {
  const auto host = machine.host();
  TestEffects effects(host, machine);
  ASSERT_TRUE(effects.run({.words = {{.text = "modprobe"}, {.text = name}}}).ok());
}

TEST(OtherDriver, ThatTheKernelHasAtBootIsNamedAndNothingIsLoadedBesideIt) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  machine.reboot();
  load_packaged(machine, kOldDriver);
  const auto refused = machine.load();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_THAT(refused.error().text(),
              AllOf(HasSubstr("the kernel has the driver 460.56 loaded"), HasSubstr("reboot")));
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("load "))));
}

TEST(OtherDriver, IsLoadedAgainFromWhereItWasIfTheNewOneFails) {
  SetupMachine machine;
  load_packaged(machine, kOldDriver);
  const auto modules = machine.modules();
  machine.smi_fails = true;
  const auto failed = machine.install(kNewDriver);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().text(),
              HasSubstr("the driver 460.56 that was loaded before is loaded again"));
  EXPECT_THAT(machine.script.log,
              AllOf(Contains("run modprobe nvidia"), Contains("run modprobe nvidia_uvm")));
  EXPECT_EQ(machine.modules(), modules);
  EXPECT_FALSE(machine.has_journal());
}

// As Google's installer has them: nothing but the directory of its driver knows them.
TEST(OtherDriver, OfGooglesDirectoryIsLoadedAgainFromThere) {
  SetupMachine machine;
  load_packaged(machine, kOldDriver);
  machine.add_packages("");
  machine.tree().file("usr/local/nvidia/.cache", "CACHE_NVIDIA_DRIVER_VERSION=460.56\n");
  for (const auto* name : {"nvidia", "nvidia-uvm"})
    machine.tree().file(fmt::format("usr/local/nvidia/drivers/{}.ko", name),
                        kernel_module::nvidia_module(kernel_module::module_name(name), kSetupKernel,
                                                     kOldDriver, "NVIDIA"));
  machine.smi_fails = true;
  const auto failed = machine.install(kNewDriver);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(machine.loaded(), kOldDriver);
  EXPECT_EQ(machine.modules().size(), 2U);
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia/drivers/nvidia.ko"));
}

// A kill between the unloading and the way back: the journal knows what was loaded.
TEST(OtherDriver, IsLoadedAgainAlsoAfterAKill) {
  SetupMachine machine;
  load_packaged(machine, kOldDriver);
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("load ")) throw KilledForTest{};
    return {};
  };
  EXPECT_THROW(static_cast<void>(machine.install(kNewDriver).ok()), KilledForTest);
  EXPECT_EQ(machine.loaded(), "");
  machine.script = {};
  machine.smi_fails = true;
  EXPECT_FALSE(machine.install(kNewDriver).ok());
  EXPECT_EQ(machine.loaded(), kOldDriver);
}

TEST(OtherDriver, ThatCannotBeBroughtBackIsNotSaidToBeAsBefore) {
  SetupMachine machine;
  load_packaged(machine, kOldDriver);
  machine.smi_fails = true;
  machine.add_packages("");  // what installed it has taken its files off
  const auto failed = machine.install(kNewDriver);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(machine.loaded(), "");
  EXPECT_THAT(failed.error().text(), AllOf(HasSubstr("which Gantry did not install, is unloaded"),
                                           Not(HasSubstr("all is as it was before"))));
}

TEST(OtherDriver, OfAnotherSourceIsTakenOffFirst) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  machine.add_packages("535.183.01");
  machine.script = {};
  const auto refused = machine.install({.version = "535", .source = preflight::Source::Packages});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Exists);
  EXPECT_THAT(refused.error().text(), HasSubstr("sudo gantry driver remove"));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("apt-get"))));
}

TEST(OtherKernel, DoesNotGetADriverWhileTheRunningOneHasAnother) {
  SetupMachine machine;
  machine.kernel(kOtherKernel);
  expect_ok(machine.install(kOldDriver));
  const auto before = machine.current();
  auto request = machine.request(kNewDriver);
  request.kernel = kOtherKernel;
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_THAT(refused.error().text(), HasSubstr("sudo gantry driver build --kernel"));
  EXPECT_EQ(machine.current(), before);
}

TEST(ModulesOfTheDriver, ThatNothingLoadsAgainAreNoted) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.tree().file("root/peermem.ko",
                      kernel_module::nvidia_module("nvidia_peermem", kSetupKernel, kOldDriver));
  const auto host = machine.host();
  TestEffects effects(host, machine);
  ASSERT_TRUE(effects.load_module("/root/peermem.ko", "").ok());
  machine.script = {};
  const auto report = machine.install(kNewDriver);
  expect_ok(report);
  EXPECT_THAT(report->notes, Contains(HasSubstr("sudo modprobe nvidia_peermem")));
}

TEST(Modeset, MayBeMissingOnAKernelWithoutDisplays) {
  SetupMachine machine;
  auto request = machine.request(kNewDriver);
  request.source = preflight::Source::Precompiled;
  request.trust_modules_without_digest = true;
  request.modules = "/root/modules";
  for (const auto* name : {"nvidia", "nvidia-uvm", "nvidia-modeset"})
    machine.tree().file(fmt::format("root/modules/{}.ko", name),
                        kernel_module::nvidia_module(kernel_module::module_name(name), kSetupKernel,
                                                     kNewDriver, "Dual MIT/GPL"));
  machine.adjust_facts = [&](preflight::MachineFacts& facts) {
    const std::string path = "/root/modules/nvidia.ko";
    facts.precompiled.push_back({path, kernel_module::read_module(machine.host(), path)});
  };
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("load ") && entry.ends_with("nvidia-modeset.ko"))
      return Error(Errc::NotFound, "module nvidia_modeset needs the module video");
    return {};
  };
  const auto report = machine.install(request);
  expect_ok(report);
  EXPECT_THAT(report->notes, Contains(HasSubstr("displays do not work")));
}

TEST(PackedModules, OfTheKernelAreLeftToModprobe) {
  SetupMachine machine;
  machine.add_packages(kNewDriver);  // modprobe finds what it is asked for
  machine.tree().file(fmt::format("lib/modules/{}/modules.dep", kSetupKernel),
                      "kernel/drivers/acpi/video.ko.xz:\n");
  auto request = machine.request(kNewDriver);
  request.source = preflight::Source::Precompiled;
  request.trust_modules_without_digest = true;
  request.modules = "/root/modules";
  for (const auto* name : {"nvidia", "nvidia_uvm"}) {
    const kernel_module::ModuleImage image{
        .info = {fmt::format("name={}", name), "license=Dual MIT/GPL", "depends=video",
                 fmt::format("version={}", kNewDriver),
                 fmt::format("vermagic={} SMP mod_unload ", kSetupKernel)}};
    machine.tree().file(fmt::format("root/modules/{}.ko",
                                    std::string_view(name) == "nvidia" ? "nvidia" : "nvidia-uvm"),
                        kernel_module::module_image(image));
  }
  machine.adjust_facts = [&](preflight::MachineFacts& facts) {
    const std::string path = "/root/modules/nvidia.ko";
    facts.precompiled.push_back({path, kernel_module::read_module(machine.host(), path)});
  };
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.ends_with("video.ko.xz")) return Error(Errc::Unsupported, "cannot unpack it");
    return {};
  };
  const std::vector<std::string> before = machine.modules();
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, Contains("run modprobe video"));
  EXPECT_THAT(machine.modules(), Contains("video"));
  machine.script = {};
  expect_ok(machine.remove());
  EXPECT_EQ(machine.modules(), before);
}

TEST(KernelsOwnModules, ThatCameWithPackagesAreUnloadedAndOthersStay) {
  SetupMachine machine;
  machine.add_packages("535.183.01");
  machine.brings_modules = {"video", "wmi"};
  load_packaged_module(machine, "wmi");
  const preflight::DriverRequest request{.version = "535", .source = preflight::Source::Packages};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.modules(), AllOf(Contains("video"), Contains("wmi"), Contains("nvidia")));
  expect_ok(machine.remove());
  EXPECT_EQ(machine.modules(), std::vector<std::string>{"wmi"});
}

// ---- Printed commands, and what a boot runs

TEST(InstallCommand, CanBePasted) {
  EXPECT_EQ(
      install_command({.version = "580.159.04",
                       .flavour = preflight::Flavour::Open,
                       .digest = "ab12",
                       .archive = {.path = "/root/my drivers/x.run"},
                       .directory = "/var/lib/nvidia",
                       .name = "580.159.04-0123456789ab-open"}),
      "sudo gantry driver install --run '/root/my drivers/x.run' --sha256 ab12 --flavour open "
      "--directory /var/lib/nvidia");
  EXPECT_EQ(install_command({.source = preflight::Source::Packages, .version = "535.183.01"}),
            "sudo gantry driver install --source packages --version 535.183.01");
}

TEST(ProgramAtBoot, IsOneThatOnlyRootCanChangeAndThatStays) {
  SetupMachine machine;
  EXPECT_THAT(reason_against_program(machine.host(), "/tmp/build/gantry"), HasSubstr("empty"));
  EXPECT_THAT(reason_against_program(machine.host(), "/x/gantry (deleted)"), HasSubstr("replaced"));
  machine.tree().file("usr/bin/gantry");
  EXPECT_EQ(reason_against_program(machine.host(), "/usr/bin/gantry"), "");
  ASSERT_EQ(::chmod(machine.tree().path("usr/bin/gantry").c_str(), 0777), 0);
  const auto report = machine.install(kNewDriver);
  expect_ok(report);
  EXPECT_THAT(report->notes, Contains(HasSubstr("nothing loads the driver at boot")));
  EXPECT_FALSE(machine.host().exists("/etc/kernel/postinst.d/gantry-driver"));
}

TEST(ProgramAtBoot, StandsInQuotesInTheUnit) {
  EXPECT_THAT(driver_unit("/opt/my gantry/100%/gantry"),
              HasSubstr("ExecStart=\"/opt/my gantry/100%%/gantry\" driver load"));
}

}  // namespace
}  // namespace gantry::driver_setup
