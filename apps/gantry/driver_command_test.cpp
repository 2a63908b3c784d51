// SPDX-License-Identifier: Apache-2.0
// gantry driver on simulated machines. They are trees of files without a kernel, so nothing is
// installed here: src/install/driver_setup tests that.
#include "gantry/driver_commands.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace gantry::cli {
namespace {

using test::Machine;
using test::run_cli;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kVersion = "580.159.04";

test::CliResult driver(const Machine& machine, std::vector<std::string> words,
                       const char* root = "--root") {
  words.insert(words.begin(), {"gantry", "driver"});
  words.insert(words.begin() + 3, {root, machine.root()});
  return run_cli(std::move(words));
}

TEST(DriverPreflight, NamesWhatIsInTheWay) {
  const Machine machine("h200");
  const auto run = driver(machine, {"preflight", "--version", "460.56"}, "--host-root");
  EXPECT_EQ(run.status, 1) << run.out;
  EXPECT_THAT(run.out, HasSubstr("H200"));
}

TEST(DriverPreflight, ListsWhatItCanFind) {
  const auto table = run_cli({"gantry", "driver", "preflight", "--list"});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("WHAT HELPS"), HasSubstr("\nclock-behind")));
  const auto json = run_cli({"gantry", "driver", "preflight", "--list", "--json"});
  EXPECT_THAT(json.out, HasSubstr(R"("code": "clock-behind")"));
  EXPECT_THAT(run_cli({"gantry", "driver", "preflight", "--list", "--markdown"}).out,
              testing::StartsWith("| finding |"));
}

TEST(DriverPreflight, WithoutAVersionItPromisesNone) {
  const Machine machine("h200");
  EXPECT_THAT(driver(machine, {"preflight"}).out,
              testing::StartsWith("a driver of any version on"));
  EXPECT_THAT(driver(machine, {"preflight", "--source", "packages"}).out,
              testing::StartsWith("the distribution's driver (packages) on"));
}

TEST(DriverInstallCommand, ADryRunShowsFindingsAndChangesNothing) {
  const Machine machine("h200");
  const auto run = driver(
      machine, {"install", "--version", kVersion, "--sha256", std::string(64, 'a'), "--dry-run"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("would unpack the archive of 580.159.04"),
                             HasSubstr("would verify 580.159.04")));
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry/driver-install"));
}

TEST(DriverInstallCommand, ADryRunWithPackagesShowsTheDistributionsCommands) {
  const Machine machine("h200");
  const auto run =
      driver(machine, {"install", "--source", "packages", "--version", "580", "--dry-run"});
  EXPECT_THAT(run.out, HasSubstr("would install the packages of 580\n"));
  EXPECT_THAT(run.out, HasSubstr("with the commands\n# "));
  EXPECT_THAT(run.out, HasSubstr(" apt-get update\n"));
  EXPECT_THAT(driver(machine, {"install", "--source", "packages", "--dry-run"}).out,
              HasSubstr("would install the packages of the distribution's choice\n"));
}

TEST(DriverPreflight, KnowsTheGuestDriverByItsName) {
  const Machine machine("h200");
  const auto run =
      driver(machine, {"preflight", "--run", "/root/NVIDIA-Linux-x86_64-580.159.04-grid.run"});
  EXPECT_THAT(run.out, HasSubstr("driver 580.159.04 (grid)"));
}

TEST(DriverInstallCommand, OnATreeOfFilesIsRefused) {
  const Machine machine("h200");
  const auto run =
      driver(machine, {"install", "--version", kVersion, "--sha256", std::string(64, 'a')});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("is a tree of files, not the running machine"));
  EXPECT_FALSE(machine.host().exists("/var/lib/gantry/driver-install"));
}

TEST(DriverInstallCommand, RefusesContradictions) {
  const Machine machine("h200");
  const auto two = driver(machine, {"install", "--run", "/x.run", "--url", "https://e.org/x.run"});
  EXPECT_THAT(two.err, HasSubstr("--run and --url name two archives"));
  const auto terminate = driver(machine, {"upgrade", "--version", kVersion, "--terminate"});
  EXPECT_EQ(terminate.status, 1);
  const auto key = driver(machine, {"install", "--version", kVersion, "--sign-key", "/k"});
  EXPECT_THAT(key.err, HasSubstr("--sign-key and --sign-certificate go together"));
  EXPECT_EQ(driver(machine, {"install", "--source", "floppy"}).status, 2);
}

TEST(DriverStatusCommand, KnowsADriverThatGantryDidNotInstall) {
  const Machine machine("h200");
  const auto run = driver(machine, {"status"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("installed  nothing by Gantry"), HasSubstr("loaded ")));
}

TEST(DriverVerifyCommand, SaysThatItCannotAskATree) {
  const Machine machine("h200");
  const auto run = driver(machine, {"verify"});
  EXPECT_THAT(run.out, HasSubstr("is loaded"));
  EXPECT_THAT(run.err, HasSubstr("nvidia-smi is not run"));
}

TEST(DriverRemoveCommand, HasNothingToRemove) {
  const Machine machine("h200");
  const auto run = driver(machine, {"remove", "--dry-run"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("nothing to do"));
}

TEST(DriverUpgradeCommand, OfNothingPointsToInstall) {
  const Machine machine("h200");
  const auto run = driver(machine, {"upgrade", "--version", kVersion});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("Gantry has installed no driver"),
                             HasSubstr("gantry driver install")));
}

TEST(DriverCompletion, OffersSourcesAndFindings) {
  EXPECT_THAT(run_cli({"gantry", "complete", "sources"}).out, HasSubstr("precompiled\n"));
  EXPECT_THAT(run_cli({"gantry", "complete", "findings"}).out, HasSubstr("headers-missing\n"));
}

// A command that ends as a request asked for, as `gantry driver install` does after SIGTERM.
TEST(StoppedCommand, HasTheExitStatusOfTheSignal) {
  std::FILE* out = std::tmpfile();
  Context context = context_of_process(out, out);
  CLI::App app("a program", "gantry");
  app.add_subcommand("install", "stops");
  int number = 0;
  const Action install = [&](Context& c) -> Result<int> {
    catch_termination(c);
    if (number != 0) ::raise(number);
    return Error(Errc::Timeout, "stopped");
  };
  std::array words{std::string("gantry"), std::string("install")};
  std::array<char*, 3> argv{words[0].data(), words[1].data(), nullptr};
  EXPECT_EQ(run_program(app, 2, argv.data(), context, install), kProblem);
  number = SIGTERM;
  EXPECT_EQ(run_program(app, 2, argv.data(), context, install), 128 + SIGTERM);
  std::fclose(out);
}

TEST(DriverInstallCommand, ARelativePathIsNotOneOfTheOtherMachine) {
  const Machine machine("h200");
  test::Tree here;
  here.file("driver.run", "x");
  const auto run = driver(machine, {"install", "--run", here.path("driver.run"), "--dry-run"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("there is no file " + machine.root() + here.path("driver.run")),
                    HasSubstr("all paths are those of that machine: copy ")));
}

}  // namespace
}  // namespace gantry::cli
