// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/install.hpp"

#include "install/driver_setup/machine_for_test.hpp"

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

TEST(DriverInstall, GoesFromNothingToALoadedDriver) {
  SetupMachine machine;
  const auto report = machine.install(kNewDriver);
  expect_ok(report);
  EXPECT_TRUE(report->changed);
  EXPECT_THAT(report->notes, IsEmpty());
  EXPECT_THAT(report->verified.smi_output, HasSubstr("Driver Version: 580.159.04"));
  EXPECT_THAT(machine.modules(), ElementsAre("nvidia", "nvidia_uvm"));
  EXPECT_EQ(machine.told_agents, 1);
  machine.expect_installed(kNewDriver);
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
  expect_ok(machine.install(kNewDriver));
  const auto before = machine.files();
  machine.script = {};
  machine.reads_of_facts = 0;
  const auto again = machine.install(kNewDriver);
  expect_ok(again);
  EXPECT_FALSE(again->changed);
  EXPECT_THAT(machine.script.log, IsEmpty());
  EXPECT_EQ(machine.reads_of_facts, 0);
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, AfterARebootOnlyLoads) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  for (const bool by_install : {true, false}) {
    machine.reboot();
    machine.script = {};
    const auto again = by_install ? machine.install(kNewDriver) : machine.load();
    expect_ok(again);
    EXPECT_TRUE(again->changed);
    for (const auto& entry : machine.script.log)
      EXPECT_THAT(entry, Not(AllOf(HasSubstr("run "), Not(HasSubstr("systemctl")))));
    machine.expect_installed(kNewDriver);
  }
}

TEST(DriverInstall, ReplacesAVersionAndKeepsTheFormerOneForTheWayBack) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  const auto former = machine.current().substr(10);
  expect_ok(machine.install(kNewDriver));
  machine.expect_installed(kNewDriver);
  EXPECT_TRUE(machine.host().exists("/usr/local/nvidia/.versions/" + former));
  machine.script = {};
  expect_ok(machine.install(kOldDriver));
  machine.expect_installed(kOldDriver);
  EXPECT_THAT(machine.script.log, Not(Contains(HasSubstr("make"))));
  expect_ok(machine.install("535.183.01"));
  machine.expect_installed("535.183.01");
  EXPECT_EQ(machine.host().list("/usr/local/nvidia/.versions")->size(), 2U);
}

TEST(DriverInstall, GoesBackToTheOldDriverIfTheNewOneDoesNotVerify) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.archive(kNewDriver);
  const auto before = machine.files();
  machine.script.rule = [&](const std::string& entry) -> Status {
    machine.smi_fails = entry.find("nvidia-smi") != std::string::npos;
    return {};
  };
  const auto failed = machine.install(kNewDriver);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().code(), Errc::Internal);
  EXPECT_THAT(failed.error().text(),
              AllOf(HasSubstr("nvidia-smi fails"), HasSubstr("Driver/library version mismatch"),
                    HasSubstr("the driver 460.56 (proprietary) is loaded again")));
  machine.smi_fails = false;
  EXPECT_EQ(machine.files(), before);
  machine.expect_installed(kOldDriver);
}

TEST(DriverInstall, OnAReadOnlyDirectorySaysWhichOneToUse) {
  SetupMachine machine;
  const auto before = machine.files();
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.find(" /usr/local") == std::string::npos || entry.starts_with("r")) return {};
    return Error::sys(EROFS, entry);
  };
  const auto refused = machine.install(kNewDriver);
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

  auto request = machine.request(kNewDriver);
  request.directory = "/var/lib/nvidia";
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_EQ(machine.loaded(), kNewDriver);
}

TEST(DriverInstall, AModuleThatTheKernelWouldRefuseIsFoundBeforeTheOldOneIsUnloaded) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.archive(kNewDriver);
  const auto before = machine.files();
  machine.adjust_facts = [](preflight::MachineFacts& facts) {
    facts.trust.signatures_enforced = true;
  };
  auto request = machine.request(kNewDriver);
  request.ignore = {"unsigned-module-refused"};
  machine.script = {};
  const auto refused = machine.install(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("unload"))));
  EXPECT_EQ(machine.loaded(), kOldDriver);
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, ABlockerOfThePreflightComesBeforeAnyChange) {
  SetupMachine machine;
  machine.adjust_facts = [](preflight::MachineFacts& facts) { facts.compiler.has_make = false; };
  const auto refused = machine.install(kNewDriver);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("make"));
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry"));
}

TEST(DriverInstall, OfAnotherVersionTakesUnfinishedWorkBackFirst) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.script = {};
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("load ") && entry.find("nvidia-uvm.ko") != std::string::npos)
      throw KilledForTest{};
    return {};
  };
  EXPECT_THROW(static_cast<void>(machine.install(kNewDriver).ok()), KilledForTest);
  EXPECT_TRUE(machine.has_journal());
  EXPECT_EQ(machine.loaded(), kNewDriver);
  machine.script = {};
  expect_ok(machine.install("535.183.01"));
  machine.expect_installed("535.183.01");
  EXPECT_EQ((*read_record(machine.host()))->previous.substr(0, 6), kOldDriver);
}

TEST(DriverInstall, ForANodeWithoutGpusIsRefused) {
  SetupMachine machine;
  machine.adjust_facts = [](preflight::MachineFacts& facts) { facts.gpus.clear(); };
  const auto refused = machine.install(kNewDriver);
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry"));
}

TEST(DriverPreview, ShowsThePlanAndChangesNothing) {
  SetupMachine machine;
  const auto request = machine.request(kNewDriver);
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

TEST(DriverRemove, LeavesNoDirectoryOfNodesWhereUdevMadeNone) {
  SetupMachine machine;
  expect_ok(machine.install(kNewDriver));
  EXPECT_EQ(machine.host().link("/dev/char/195:0").value_or(""), "../nvidia0");
  expect_ok(machine.remove());
  EXPECT_FALSE(machine.host().exists("/dev/char"));
}

}  // namespace
}  // namespace gantry::driver_setup
