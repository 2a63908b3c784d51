// SPDX-License-Identifier: Apache-2.0
// SIGTERM at every effect: what was begun is taken back, or the installation is whole.
#include "install/driver_setup/machine_for_test.hpp"

#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

namespace gantry::driver_setup {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What LiveEffects ends in the middle.
bool is_cut_short(const std::string& entry) {
  constexpr std::array<std::string_view, 6> kCut{"download ", "run sh ",    "run make ",
                                                 "run cp ",   "run strip ", "run patch "};
  return std::any_of(kCut.begin(), kCut.end(),
                     [&](std::string_view begin) { return entry.starts_with(begin); });
}

void stop_at(SetupMachine& machine, int effect) {
  machine.script = {};
  machine.script.rule = [&machine, effect](const std::string& entry) -> Status {
    if (machine.script.count != effect) return {};
    machine.stop->request(SIGTERM);
    if (is_cut_short(entry)) return Error(Errc::Timeout, entry + ": was stopped");
    return {};
  };
}

void go_on(SetupMachine& machine) {
  machine.script = {};
  machine.stop = std::make_unique<sys::Termination>();
}

class StopAtEveryEffect : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<SetupMachine> fresh() const {
    auto machine = std::make_unique<SetupMachine>();
    machine->archive(kNewDriver);
    machine->archive(kOldDriver);
    if (GetParam()) expect_ok(machine->install(kOldDriver));
    return machine;
  }
  std::string old_driver() const { return GetParam() ? kOldDriver : ""; }
};

TEST_P(StopAtEveryEffect, TakesBackWhatWasBegunOrEndsInstalled) {
  int taken_back = 0;
  int installed = 0;
  for (int at = 1;; ++at) {
    auto machine = fresh();
    const auto before = machine->files();
    stop_at(*machine, at);
    const auto done = machine->install(kNewDriver);
    if (!machine->stop->requested()) break;
    SCOPED_TRACE(
        fmt::format("effect {}: {}", at, machine->script.log[static_cast<std::size_t>(at - 1)]));
    EXPECT_FALSE(machine->has_journal());
    if (done.ok()) {
      ++installed;
      EXPECT_EQ(machine->loaded(), kNewDriver);
    } else {
      ++taken_back;
      EXPECT_EQ(done.error().code(), Errc::Timeout);
      EXPECT_THAT(done.error().text(), HasSubstr("stopped by SIGTERM; "));
      EXPECT_EQ(machine->loaded(), old_driver());
      auto after = machine->files();
      for (const auto* state : {"", "/driver-install", "/driver-install/lock"})
        after.erase(fmt::format("/var/lib/gantry{}", state));
      for (const auto& [path, content] : after)
        EXPECT_TRUE(before.contains(path) && before.at(path) == content) << path;
    }
    go_on(*machine);
    expect_ok(machine->install(kNewDriver));
    machine->expect_installed(kNewDriver);
    if (HasFailure()) break;
  }
  EXPECT_GT(taken_back, 25);
  EXPECT_GT(installed, 2) << "after the record nothing is taken back";
}

INSTANTIATE_TEST_SUITE_P(Driver, StopAtEveryEffect, ::testing::Values(false, true),
                         [](const auto& one) { return one.param ? "Upgrade" : "Install"; });

TEST(Stop, EndsTheWaitForProcesses) {
  SetupMachine machine;
  expect_ok(machine.install(kOldDriver));
  machine.holder(4711, "python3");
  auto request = machine.request(kNewDriver);
  request.drain = true;
  machine.script.rule = [&machine](const std::string& entry) -> Status {
    if (entry == "pause") machine.stop->request(SIGINT);
    return {};
  };
  const auto done = machine.install(request);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(),
              HasSubstr(fmt::format("stopped by SIGINT; the driver {}", kOldDriver)));
  EXPECT_EQ(machine.loaded(), kOldDriver);
}

TEST(Stop, RemovalSaysWhatGoesOn) {
  SetupMachine machine;
  machine.archive(kNewDriver);
  expect_ok(machine.install(kNewDriver));
  stop_at(machine, 4);
  const auto done = machine.remove();
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(),
              AllOf(HasSubstr("stopped by SIGTERM; the driver is not removed completely"),
                    HasSubstr("sudo gantry driver remove")));
  go_on(machine);
  expect_ok(machine.remove());
  EXPECT_EQ(machine.loaded(), "");
}

TEST(Stop, RemovalThatWaitsChangesNothing) {
  SetupMachine machine;
  machine.archive(kNewDriver);
  expect_ok(machine.install(kNewDriver));
  machine.holder(4711, "python3");
  machine.stop->request(SIGTERM);
  const auto done = machine.remove({.drain = true});
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), HasSubstr("stopped by SIGTERM; the driver is as it was"));
  EXPECT_FALSE(machine.has_journal());
}

TEST(Stop, BuildLeavesNothingHalfBuilt) {
  SetupMachine machine;
  machine.archive(kNewDriver);
  expect_ok(machine.install(kNewDriver));
  machine.kernel(kOtherKernel);
  machine.script.rule = [&machine](const std::string& entry) -> Status {
    if (!entry.starts_with("run make ")) return {};
    machine.stop->request(SIGTERM);
    return Error(Errc::Timeout, "make: was stopped");
  };
  const auto before = machine.files();
  const auto done = machine.build(kOtherKernel);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(),
              AllOf(HasSubstr("stopped by SIGTERM; nothing was built"),
                    HasSubstr("sudo gantry driver build --kernel 6.1.0-22-amd64")));
  EXPECT_EQ(machine.files(), before);
}

TEST(Stop, DownloadGoesOnWithTheSameCommand) {
  SetupMachine machine;
  auto request = machine.request(kNewDriver);
  request.run_file.clear();
  request.url = fmt::format("https://example.org/NVIDIA-Linux-x86_64-{}.run", kNewDriver);
  request.sha256 = std::string(64, 'a');
  machine.script.rule = [&machine](const std::string& entry) -> Status {
    if (!entry.starts_with("download ")) return {};
    machine.stop->request(SIGHUP);
    return Error(Errc::Timeout, "the download was stopped");
  };
  const auto done = machine.install(request);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), AllOf(HasSubstr("stopped by SIGHUP; the driver is as it was"),
                                         HasSubstr("goes on with what was downloaded")));
}

}  // namespace
}  // namespace gantry::driver_setup
