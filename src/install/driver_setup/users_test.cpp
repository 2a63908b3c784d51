// SPDX-License-Identifier: Apache-2.0
// Processes, pods and services that use the driver, and a second installer.
#include "base/sys/child.hpp"
#include "install/driver_setup/effects_for_test.hpp"
#include "install/driver_setup/idle.hpp"
#include "install/driver_setup/install.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/machine_for_test.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(DriverInstall, NeverUnloadsUnderAProcess) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.archive(kNewDriver);
  machine.holder(4711, "python3");
  const auto before = machine.files();
  const auto busy = machine.install(kNewDriver);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  EXPECT_THAT(busy.error().text(), AllOf(HasSubstr("pid 4711 (python3)"), HasSubstr("--drain")));
  EXPECT_EQ(machine.loaded(), kOldDriver);
  EXPECT_EQ(machine.files(), before);
}

TEST(DriverInstall, DrainWaitsUntilTheProcessHasEnded) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.holder(4711, "python3");
  auto request = machine.request(kNewDriver);
  request.drain = true;
  int pauses = 0;
  machine.script.rule = [&](const std::string& entry) -> Status {
    EXPECT_THAT(entry, Not(StartsWith("terminate")));
    if (entry == "pause" && ++pauses == 3) machine.tree().remove("proc/4711");
    return {};
  };
  expect_ok(machine.install(request));
  EXPECT_EQ(pauses, 3);
  machine.expect_installed(kNewDriver);
}

TEST(DriverInstall, DrainGivesUpAndNamesThePod) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.tree().directory("var/log/pods/default_train_0a1b2c3d-0000-4000-8000-000000000001");
  machine.holder(4711, "python3",
                 "0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_000000000001.slice/"
                 "cri-containerd-1111111111111111111111111111111111111111111111111111111111111111"
                 ".scope\n");
  auto request = machine.request(kNewDriver);
  request.drain = request.terminate = true;
  request.drain_seconds = 5;
  const auto busy = machine.install(request);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  EXPECT_THAT(busy.error().text(), AllOf(HasSubstr("of pod default/train"),
                                         HasSubstr("delete or evict the pod default/train")));
  EXPECT_THAT(machine.script.log, Not(Contains(StartsWith("terminate"))));
  EXPECT_EQ(machine.loaded(), kOldDriver);
}

TEST(DriverInstall, TerminatesProcessesOnlyIfThatIsAskedFor) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.holder(4711, "python3");
  auto request = machine.request(kNewDriver);
  request.drain = request.terminate = true;
  machine.script = {};
  expect_ok(machine.install(request));
  EXPECT_THAT(machine.script.log, Contains("terminate 4711"));
  machine.expect_installed(kNewDriver);
}

TEST(DriverInstall, StopsTheDriversServicesAndStartsThemAgain) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.unit("nvidia-dcgm.service", true).unit("nvidia-powerd.service", false);
  machine.script = {};
  expect_ok(machine.install(kNewDriver));
  EXPECT_THAT(machine.script.log, AllOf(Contains("run systemctl stop nvidia-dcgm.service"),
                                        Contains("run systemctl start nvidia-dcgm.service"),
                                        Not(Contains("run systemctl stop nvidia-powerd.service"))));
}

// The kernel ends a PID namespace with its first process.
TEST(DriverInstall, FromAPodStartsNoDaemonThatWouldEndWithIt) {
  const auto runs_daemon = Contains(AllOf(StartsWith("run"), HasSubstr("/nvidia-persistenced")));
  SetupMachine machine;
  machine.has_persistence_daemon = true;
  machine.tree().link("proc/1/ns/pid", "pid:[1]");
  const auto report = machine.install(kOldDriver);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_THAT(machine.script.log, Not(runs_daemon));
  EXPECT_THAT(report->notes, Contains(AllOf(HasSubstr("would end with this pod"),
                                            HasSubstr("on the node: sudo env LD_LIBRARY_PATH="))));
  SetupMachine here;
  here.has_persistence_daemon = true;
  expect_ok(here.install(kOldDriver));
  EXPECT_THAT(here.script.log, runs_daemon);
}

TEST(DriverInstall, OneAtATime) {
  SetupMachine machine;
  const auto host = machine.host();
  const auto lock = lock_driver_setup(host);
  ASSERT_TRUE(lock.ok());
  const auto second = machine.install(kNewDriver);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Errc::Busy);
  EXPECT_THAT(second.error().text(), HasSubstr(fmt::format("process {}", ::getpid())));
  EXPECT_THAT(machine.script.log, IsEmpty());
}

// A process that cannot be looked into may use the driver, if something does.
class UnreadableUser : public ::testing::Test {
 protected:
  // Whether the modules may be unloaded, as an ordinary user finds it.
  std::string idle(bool accepts_unknown = false) {
    const auto look = [&]() -> std::string {
      const auto host = tree_.host();
      const auto idle = await_idle(host, {.accepts_unknown = accepts_unknown}, effects_, {});
      return idle.ok() ? "idle" : idle.error().text();
    };
    EXPECT_EQ(::chmod(tree_.root().c_str(), 0755), 0);
    EXPECT_EQ(::chmod(tree_.path("proc/4711/fd").c_str(), 0), 0);
    const sys::ChildUser nobody{.uid = 61234, .gid = 61234};
    const auto* user = ::geteuid() == 0 ? &nobody : nullptr;
    const auto answer = sys::run_in_child(look, {.user = user});
    ::chmod(tree_.path("proc/4711/fd").c_str(), 0755);
    return answer.ok() ? *answer : answer.error().text();
  }
  UnreadableUser() {
    tree_.file("dev.table", "/dev/nvidia0 c 195 0 0666 0 0\n");
    tree_.link("proc/4711/fd/3", "/dev/nvidia0");
    tree_.file("proc/4711/stat", "4711 (train) S 1 1 1 0 -1 4194560 0\n");
    tree_.file("proc/modules", "nvidia 56668160 2 - Live 0x0\n");
  }
  SetupMachine machine_;
  test::Tree tree_;
  sys::Host host_ = tree_.host();
  TestEffects effects_{host_, machine_};
};

TEST_F(UnreadableUser, KeepsTheDriverLoaded) {
  EXPECT_THAT(idle(), AllOf(HasSubstr("1 process cannot be looked into (pid 4711)"),
                            HasSubstr("cannot be known whether a process uses the loaded driver"),
                            HasSubstr("SYS_PTRACE"), HasSubstr("--ignore gpu-users-unknown")));
  EXPECT_EQ(idle(true), "idle");
}

TEST_F(UnreadableUser, DoesNotMatterIfNothingHoldsTheModules) {
  tree_.file("proc/modules", "nvidia_uvm 4096 0 - Live 0x0\nnvidia 4096 1 nvidia_uvm, Live 0x0\n");
  EXPECT_EQ(idle(), "idle");
}

}  // namespace
}  // namespace gantry::driver_setup
