// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/install.hpp"

#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/machine_for_test.hpp"
#include "install/kernel_module/module_image_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr const char* kOld = "460.56";
constexpr const char* kNew = "580.159.04";

void expect_ok(const Result<SetupReport>& report) {
  ASSERT_TRUE(report.ok()) << report.error().text();
}

TEST(DriverInstall, GoesFromNothingToALoadedDriver) {
  SetupMachine machine;
  const auto report = machine.install(kNew);
  expect_ok(report);
  EXPECT_TRUE(report->changed);
  EXPECT_THAT(report->notes, IsEmpty());
  EXPECT_THAT(report->verified.smi_output, HasSubstr("Driver Version: 580.159.04"));
  EXPECT_THAT(machine.modules(), ElementsAre("nvidia", "nvidia_uvm"));
  EXPECT_EQ(machine.told_agents, 1);
  machine.expect_installed(kNew);
  const auto host = machine.host();
  EXPECT_EQ(*host.read("/usr/local/nvidia/lib64/libcuda.so.1"), "a library of 580.159.04");
  EXPECT_EQ(*host.read("/etc/ld.so.conf.d/gantry-driver.conf"), "/usr/local/nvidia/lib64\n");
  EXPECT_TRUE(host.exists(fmt::format("/usr/local/nvidia/drivers/{}/nvidia.ko", kSetupKernel)));
  EXPECT_TRUE(host.exists("/usr/local/nvidia/firmware/nvidia/580.159.04/gsp_tu10x.bin"));
  EXPECT_EQ(host.read_value("/sys/module/firmware_class/parameters/path"),
            "/usr/local/nvidia/firmware");
  EXPECT_TRUE(host.exists("/etc/systemd/system/multi-user.target.wants/gantry-driver.service"));
  EXPECT_TRUE(host.exists("/etc/kernel/postinst.d/gantry-driver"));
  EXPECT_FALSE(host.exists("/usr/local/nvidia/bin/nvidia-installer"));
}

TEST(DriverInstall, ASecondTimeTouchesNothing) {
  SetupMachine machine;
  expect_ok(machine.install(kNew));
  const auto before = machine.files();
  machine.script = {};
  machine.reads_of_facts = 0;
  const auto again = machine.install(kNew);
  expect_ok(again);
  EXPECT_FALSE(again->changed);
  EXPECT_THAT(machine.script.log, IsEmpty());
  EXPECT_EQ(machine.reads_of_facts, 0);
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, AfterARebootOnlyLoads) {
  SetupMachine machine;
  expect_ok(machine.install(kNew));
  for (const bool by_install : {true, false}) {
    machine.reboot();
    machine.script = {};
    const auto again = by_install ? machine.install(kNew) : machine.load();
    expect_ok(again);
    EXPECT_TRUE(again->changed);
    for (const auto& entry : machine.script.log)
      EXPECT_THAT(entry, Not(AllOf(HasSubstr("run "), Not(HasSubstr("systemctl")))));
    machine.expect_installed(kNew);
  }
}

TEST(DriverInstall, ReplacesAVersionAndKeepsTheFormerOneForTheWayBack) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  const auto former = machine.current().substr(10);
  expect_ok(machine.install(kNew));
  machine.expect_installed(kNew);
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia/.versions/" + former));
  machine.script = {};
  expect_ok(machine.install(kOld));
  machine.expect_installed(kOld);
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("make"))));
  expect_ok(machine.install("535.183.01"));
  machine.expect_installed("535.183.01");
  EXPECT_EQ(machine.host().list("/usr/local/nvidia/.versions")->size(), 2U);
}

TEST(DriverInstall, GoesBackToTheOldDriverIfTheNewOneDoesNotVerify) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.archive(kNew);
  const auto before = machine.files();
  machine.script.rule = [&](const std::string& entry) -> Status {
    machine.smi_fails = entry.find("nvidia-smi") != std::string::npos;
    return {};
  };
  const auto failed = machine.install(kNew);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().code(), Errc::Internal);
  EXPECT_THAT(failed.error().text(),
              AllOf(HasSubstr("nvidia-smi fails"), HasSubstr("Driver/library version mismatch"),
                    HasSubstr("the driver 460.56 (proprietary) is loaded again")));
  machine.smi_fails = false;
  EXPECT_EQ(machine.files(), before);
  machine.expect_installed(kOld);
}

TEST(DriverInstall, NeverUnloadsUnderAProcess) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.archive(kNew);
  machine.holder(4711, "python3");
  const auto before = machine.files();
  const auto busy = machine.install(kNew);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  EXPECT_THAT(busy.error().text(), AllOf(HasSubstr("pid 4711 (python3)"), HasSubstr("--drain")));
  EXPECT_EQ(machine.loaded(), kOld);
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, DrainWaitsUntilTheProcessHasEnded) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.holder(4711, "python3");
  auto request = machine.request(kNew);
  request.drain = true;
  int pauses = 0;
  machine.script.rule = [&](const std::string& entry) -> Status {
    EXPECT_THAT(entry, Not(StartsWith("terminate")));
    if (entry == "pause" && ++pauses == 3) machine.tree().remove("proc/4711");
    return {};
  };
  expect_ok(machine.install(request));
  EXPECT_EQ(pauses, 3);
  machine.expect_installed(kNew);
}

TEST(DriverInstall, DrainGivesUpAndNamesThePod) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.tree().directory("var/log/pods/default_train_0a1b2c3d-0000-4000-8000-000000000001");
  machine.holder(4711, "python3",
                 "0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_000000000001.slice/"
                 "cri-containerd-1111111111111111111111111111111111111111111111111111111111111111"
                 ".scope\n");
  auto request = machine.request(kNew);
  request.drain = request.terminate = true;
  request.drain_seconds = 5;
  const auto busy = machine.install(request);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  EXPECT_THAT(busy.error().text(), AllOf(HasSubstr("of pod default/train"),
                                         HasSubstr("delete or evict the pod default/train")));
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("terminate"))));
  EXPECT_EQ(machine.loaded(), kOld);
}

TEST(DriverInstall, TerminatesProcessesOnlyIfThatIsAskedFor) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.holder(4711, "python3");
  auto request = machine.request(kNew);
  request.drain = request.terminate = true;
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, Contains("terminate 4711"));
  machine.expect_installed(kNew);
}

TEST(DriverInstall, StopsTheDriversServicesAndStartsThemAgain) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.unit("nvidia-dcgm.service", true).unit("nvidia-powerd.service", false);
  machine.script = {};
  expect_ok(machine.install(kNew));
  EXPECT_THAT(machine.script.log, AllOf(Contains("run systemctl stop nvidia-dcgm.service"),
                                        Contains("run systemctl start nvidia-dcgm.service"),
                                        Not(Contains("run systemctl stop nvidia-powerd.service"))));
}

TEST(DriverInstall, OneAtATime) {
  SetupMachine machine;
  const auto host = machine.host();
  const auto lock = lock_driver_setup(host);
  ASSERT_TRUE(lock.ok());
  const auto second = machine.install(kNew);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Errc::Busy);
  EXPECT_THAT(second.error().text(), HasSubstr(fmt::format("process {}", ::getpid())));
  EXPECT_THAT(machine.script.log, IsEmpty());
}

TEST(DriverInstall, OnAReadOnlyDirectorySaysWhichOneToUse) {
  SetupMachine machine;
  const auto before = machine.files();
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.find(" /usr/local") == std::string::npos || entry.starts_with("r")) return {};
    return Error::sys(EROFS, entry);
  };
  const auto refused = machine.install(kNew);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(),
              AllOf(HasSubstr("Read-only file system"), HasSubstr("--directory DIR"),
                    HasSubstr("all is as it was before")));
  auto after = machine.files();
  for (const auto* state :
       {"/var/lib/gantry", "/var/lib/gantry/driver-install", "/var/lib/gantry/driver-install/lock"})
    after.erase(state);
  auto expected = before;
  for (const auto& name : machine.host().list("/root").value_or({})) expected["/root/" + name];
  after.erase("/root");
  expected.erase("/root");
  for (const auto& [path, content] : after) EXPECT_TRUE(expected.contains(path)) << path;

  auto request = machine.request(kNew);
  request.directory = "/var/lib/nvidia";
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_EQ(machine.loaded(), kNew);
}

TEST(DriverInstall, AModuleThatTheKernelWouldRefuseIsFoundBeforeTheOldOneIsUnloaded) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.archive(kNew);
  const auto before = machine.files();
  machine.adjust_facts = [](preflight::MachineFacts& facts) {
    facts.trust.signatures_enforced = true;
  };
  auto request = machine.request(kNew);
  request.ignore = {"unsigned-module-refused"};
  machine.script = {};
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("unload"))));
  EXPECT_EQ(machine.loaded(), kOld);
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, ABlockerOfThePreflightComesBeforeAnyChange) {
  SetupMachine machine;
  machine.adjust_facts = [](preflight::MachineFacts& facts) { facts.compiler.has_make = false; };
  const auto refused = machine.install(kNew);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("make"));
  EXPECT_THAT(machine.script.log, IsEmpty());
}

TEST(DriverInstall, DownloadsWithAPinnedDigestAndNotWithoutOne) {
  SetupMachine machine;
  const auto path = machine.archive(kNew);
  const auto bytes = *machine.host().read(path);
  const std::string url = "https://mirror.example.org/NVIDIA-Linux-x86_64-580.159.04.run";
  machine.server[url] = bytes;
  preflight::DriverRequest request{.url = url};
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("--trust-download-without-digest"));

  driver_package::Sha256 sum;
  sum.add(bytes);
  request.sha256 = sum.finish();
  expect_ok(machine.install(request));
  machine.expect_installed(kNew);
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, IsEmpty());
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry/driver-install/downloads"));
}

TEST(DriverInstall, OfAnotherVersionTakesUnfinishedWorkBackFirst) {
  SetupMachine machine;
  expect_ok(machine.install(kOld));
  machine.script = {};
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("load ") && entry.find("nvidia-uvm.ko") != std::string::npos)
      throw KilledForTest{};
    return {};
  };
  EXPECT_THROW(static_cast<void>(machine.install(kNew).ok()), KilledForTest);
  EXPECT_TRUE(machine.has_journal());
  EXPECT_EQ(machine.loaded(), kNew);
  machine.script = {};
  expect_ok(machine.install("535.183.01"));
  machine.expect_installed("535.183.01");
  EXPECT_EQ((*read_record(machine.host()))->previous.substr(0, 6), kOld);
}

TEST(DriverInstall, PrecompiledModulesAreCheckedAgainstTheKernel) {
  SetupMachine machine;
  auto request = machine.request(kNew);
  request.source = preflight::Source::Precompiled;
  request.modules = "/root/modules";
  machine.adjust_facts = [&](preflight::MachineFacts& facts) {
    for (const auto* path : {"/root/modules/nvidia.ko", "/root/modules/nvidia-uvm.ko"})
      facts.precompiled.push_back({path, kernel_module::read_module(machine.host(), path)});
  };
  const auto put = [&](std::string_view release, std::string_view version) {
    for (const auto* name : {"nvidia", "nvidia_uvm"}) {
      std::string file(name);
      std::replace(file.begin(), file.end(), '_', '-');
      machine.tree().file(fmt::format("root/modules/{}.ko", file),
                          kernel_module::nvidia_module(name, release, version, "Dual MIT/GPL"));
    }
  };
  put(kOtherKernel, kNew);
  const auto other_kernel = machine.install(request);
  ASSERT_FALSE(other_kernel.ok());
  EXPECT_THAT(other_kernel.error().text(), HasSubstr("was built for kernel 6.1.0-22-amd64"));
  put(kSetupKernel, kOld);
  const auto other_version = machine.install(request);
  ASSERT_FALSE(other_version.ok());
  EXPECT_THAT(other_version.error().text(), HasSubstr("is of driver 460.56"));
  put(kSetupKernel, kNew);
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("run make"))));
  machine.expect_installed(kNew);
  EXPECT_TRUE(machine.host().exists("/root/modules/nvidia.ko"));
}

TEST(DriverInstall, TakesPackagesAndLeavesTheirFilesToThem) {
  SetupMachine machine;
  machine.add_packages("535.183.01");
  preflight::DriverRequest request{.version = "535", .source = preflight::Source::Packages};
  const auto done = machine.install(request);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(machine.loaded(), "535.183.01");
  EXPECT_EQ(done->record.version, "535.183.01");
  EXPECT_FALSE(machine.host().exists("/usr/local/nvidia"));
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, IsEmpty());
  expect_ok(machine.remove());
  EXPECT_THAT(machine.script.log, Contains(HasSubstr("apt-get")));
  EXPECT_EQ(machine.loaded(), "");
}

TEST(DriverInstall, ForANodeWithoutGpusIsRefused) {
  SetupMachine machine;
  machine.adjust_facts = [](preflight::MachineFacts& facts) { facts.gpus.clear(); };
  const auto refused = machine.install(kNew);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(machine.script.log, IsEmpty());
}

TEST(DriverBuild, ForAKernelThatDoesNotRunYetLetsItLoadAfterTheReboot) {
  SetupMachine machine;
  expect_ok(machine.install(kNew));
  const auto early = machine.build(kOtherKernel);
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().text(), HasSubstr(kOtherKernel));
  machine.kernel(kOtherKernel);
  const auto built = machine.build(kOtherKernel);
  expect_ok(built);
  EXPECT_TRUE(built->changed);
  EXPECT_FALSE(machine.build(kOtherKernel)->changed);

  machine.reboot();
  machine.tree().file("proc/sys/kernel/osrelease", fmt::format("{}\n", kOtherKernel));
  expect_ok(machine.load());
  machine.expect_installed(kNew);
}

TEST(DriverLoad, SaysWhatIsMissing) {
  SetupMachine machine;
  const auto nothing = machine.load();
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code(), Errc::NotFound);
  expect_ok(machine.install(kNew));
  machine.reboot();
  machine.tree().file("proc/sys/kernel/osrelease", fmt::format("{}\n", kOtherKernel));
  const auto other = machine.load();
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::NotFound);
  EXPECT_THAT(other.error().text(),
              AllOf(HasSubstr("no modules of the driver 580.159.04 (open) for the kernel "
                              "6.1.0-22-amd64"),
                    HasSubstr("sudo gantry driver build --kernel 6.1.0-22-amd64")));
}

TEST(DriverPreview, ShowsThePlanAndChangesNothing) {
  SetupMachine machine;
  const auto request = machine.request(kNew);
  const auto before = machine.files();
  const auto preview = preview_install(machine.host(), request, machine.options());
  ASSERT_TRUE(preview.ok()) << preview.error().text();
  EXPECT_FALSE(preview->up_to_date);
  EXPECT_FALSE(preflight::blocks(preview->findings));
  EXPECT_EQ(preview->plan.steps.front().kind, StepKind::Unpack);
  EXPECT_EQ(machine.files(), before);
  expect_ok(machine.install(request));
  EXPECT_TRUE(preview_install(machine.host(), request, machine.options())->up_to_date);
}

}  // namespace
}  // namespace gantry::driver_setup
