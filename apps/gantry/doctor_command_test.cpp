// SPDX-License-Identifier: Apache-2.0
#include "gantry/command.hpp"
#include "sharing/daemon/share_record.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(DoctorCommand, ListsAndExplainsItsChecks) {
  EXPECT_THAT(run_cli({"gantry", "doctor", "--list"}).out, HasSubstr("numa.unknown"));
  const auto run = run_cli({"gantry", "doctor", "--explain", "node.group"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, HasSubstr("user = \"root:video\""));
}

TEST(DoctorCommand, ExplainsInJsonWhenAsked) {
  const auto run = run_cli({"gantry", "doctor", "--explain", "node.*", "--json"});
  EXPECT_EQ(run.status, 0);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_GT(json["checks"].size(), 3U);
  EXPECT_EQ(json["checks"][0]["id"], "node.missing");
  EXPECT_EQ(json["checks"][0]["fix_class"], "A");
}

TEST(DoctorCommand, WaitsForNvmlNoLongerThanTheDeadline) {
  const auto run = run_cli({"gantry", "doctor", "--deadline", "0"});
  EXPECT_EQ(run.status, 2) << run.err;
  test::Machine machine("h200");
  EXPECT_EQ(run_cli({"gantry", "doctor", "--deadline", "5", "--root", machine.root(), "--only",
                     "module.loaded"})
                .status,
            0);
}

TEST(DoctorCommand, SaysThatSharesAreThereWithoutTheDaemon) {
  test::Machine machine("h200");
  const auto host = machine.host();
  daemon::ShareRecord record{.share = *policy::parse_share({.name = "blue", .memory = "1GiB"}),
                             .cards = {{.uuid = {"GPU-1"}, .memory_bytes = 140}}};
  ASSERT_TRUE(daemon::write_record(host, record).ok());
  machine.file("/run/gantry/shares/half/fence/cuda", "");
  const auto run = run_cli({"gantry", "doctor", "--root", machine.root(), "--only", "shares.*"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("the share daemon does not answer, but there are shares: blue"));
  EXPECT_THAT(run.out, HasSubstr("gantry share ls --root " + machine.root()));
  EXPECT_TRUE(host.exists("/run/gantry/shares/half")) << "it only reads";
}

TEST(DoctorCommand, PointsToASimulatedMachineIfThereIsNoGpu) {
  test::Tree tree;
  tree.file("proc/version", "Linux").directory("sys/bus/pci/devices");
  const auto run = run_cli({"gantry", "doctor", "--root", tree.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, StartsWith("fail\n  pci.present  there is no NVIDIA GPU on the PCI bus"));
  EXPECT_THAT(run.out, HasSubstr("gantry sim create h200 --root"));
  EXPECT_THAT(run.out, Not(HasSubstr("the driver started every GPU")));
}

TEST(DoctorCommand, ShowsItsFindingInAFewLines) {
  test::Machine machine("no-uvm");
  const auto run = run_cli({"gantry", "doctor", "--root", machine.root()});
  EXPECT_THAT(run.out, StartsWith("fail\n  module.uvm  nvidia_uvm is not loaded"));
  EXPECT_LE(std::count(run.out.begin(), run.out.end(), '\n'), 16) << run.out;
  const auto all = run_cli({"gantry", "doctor", "--all", "--root", machine.root()});
  EXPECT_GE(std::count(all.out.begin(), all.out.end(), '\n'), 100) << all.out;
}

// A terminal with this many columns.
class DoctorTerminal {
 public:
  explicit DoctorTerminal(unsigned short columns) : keyboard_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(keyboard_);
    ::unlockpt(keyboard_);
    const struct winsize size { .ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0 };
    ::ioctl(keyboard_, TIOCSWINSZ, &size);
    screen_ = std::fopen(::ptsname(keyboard_), "w");  // NOLINT(concurrency-mt-unsafe)
  }
  ~DoctorTerminal() {
    std::fclose(screen_);
    ::close(keyboard_);
  }
  DoctorTerminal(const DoctorTerminal&) = delete;
  DoctorTerminal& operator=(const DoctorTerminal&) = delete;
  std::FILE* screen() { return screen_; }
  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 25, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(keyboard_, TIOCSWINSZ, &size), 0);
  }

 private:
  int keyboard_;
  std::FILE* screen_ = nullptr;
};

TEST(Program, FollowsATerminalThatIsResized) {
  DoctorTerminal terminal(72);
  auto context = context_of_process(terminal.screen(), stderr);
  terminal.resize(120);
  context.measure_terminal();
  EXPECT_EQ(context.columns, 120U);
  EXPECT_EQ(context.width, 120U);
}

TEST(Program, HasColoursAndTheWidthOfTheTerminal) {
  DoctorTerminal terminal(72);
  ASSERT_NE(terminal.screen(), nullptr);
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(context_of_process(terminal.screen(), stderr).color);
  EXPECT_EQ(context_of_process(terminal.screen(), stderr).width, 72U);
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(context_of_process(terminal.screen(), stderr).color) << "an empty one does not count";
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(context_of_process(terminal.screen(), stderr).color);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(context_of_process(terminal.screen(), stderr).color);
  ::unsetenv("TERM");
}

TEST(DoctorCommand, RefusesAnUnknownCheckAsWrongUsage) {
  for (const char* flag : {"--only", "--skip", "--explain", "--fix"}) {
    const auto run = run_cli({"gantry", "doctor", flag, "no.such"});
    EXPECT_EQ(run.status, 2) << flag;
    EXPECT_THAT(run.err, HasSubstr("gantry doctor --list")) << flag;
  }
}

TEST(DoctorCommand, ExitStatusTellsWhetherSomethingFailed) {
  test::Machine machine("h200");
  const auto only = [&](const char* id) {
    return run_cli({"gantry", "doctor", "--root", machine.root().c_str(), "--only", id});
  };
  auto run = only("module.loaded,numa.unknown");
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("2 checks: 1 ok, 1 info, 0 warn, 0 fail, 0 skipped"));
  machine.remove("/sys/module/nvidia").remove("/proc/driver/nvidia");
  run = only("module.loaded");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("gantry sim inject --root"));
}

}  // namespace
}  // namespace gantry::cli
