// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <stdlib.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Gantry, HelpIsNotAnError) {
  const auto run = run_cli({"gantry", "--help"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, HasSubstr("Usage: gantry"));
}

TEST(Gantry, AlonePrintsItsHelp) {
  for (const auto* name : {"gantry", "nvidia-ctk"}) {
    const auto run = run_cli({name});
    EXPECT_EQ(run.status, 0) << name;
    EXPECT_THAT(run.out, HasSubstr(std::string("Usage: ") + name));
    EXPECT_EQ(run.err, "");
  }
}

TEST(Gantry, NamesTheNearestCommandAndOption) {
  EXPECT_THAT(run_cli({"gantry", "docter"}).err, HasSubstr("did you mean `doctor`?"));
  EXPECT_THAT(run_cli({"gantry", "sim", "creat", "h200"}).err, HasSubstr("did you mean `create`?"));
  EXPECT_THAT(run_cli({"gantry", "info", "--jsn"}).err, HasSubstr("did you mean `--json`?"));
  EXPECT_THAT(run_cli({"gantry", "info", "--rot=/x"}).err, HasSubstr("did you mean `--root`?"));
  EXPECT_THAT(run_cli({"gantry", "zzzzzzzzzzzz"}).err, Not(HasSubstr("did you mean")));
}

// CLI11 takes the next word for the value of `--option=`.
TEST(Gantry, AnEmptyValueIsAValue) {
  test::Tree tree;
  tree.file("etc/docker/daemon.json", "{}\n");
  const auto here = std::filesystem::current_path();
  test::Tree elsewhere;
  std::filesystem::current_path(elsewhere.root());
  const auto run = run_cli({"gantry", "runtime", "configure", "--runtime=docker", "--root",
                            tree.root(), "--config=", "--dry-run"});
  std::filesystem::current_path(here);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("+++"));
  EXPECT_EQ(*tree.host().read("/etc/docker/daemon.json"), "{}\n") << "a dry run";
  EXPECT_TRUE(elsewhere.host().list("/")->empty());
  EXPECT_EQ(run_cli({"gantry", "info", "--json="}).status, 2) << "a flag has no empty value";
}

TEST(Gantry, TellsItsVersion) {
  EXPECT_THAT(run_cli({"gantry", "--version"}).out, HasSubstr("gantry " GANTRY_VERSION));
}

TEST(Gantry, AFullDiskIsAnErrorNotACrash) {
  std::FILE* full = std::fopen("/dev/full", "we");
  ASSERT_NE(full, nullptr);
  std::vector<std::string> words = {"gantry", "man-page"};
  std::vector<char*> argv = {words[0].data(), words[1].data(), nullptr};
  EXPECT_EQ(main_program(2, argv.data(), full, stderr), 1);
  std::fclose(full);
}

TEST(Gantry, AnUnknownCommandIsAUsageError) {
  const auto run = run_cli({"gantry", "no-such-command"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("no-such-command"));
  EXPECT_THAT(run.err, HasSubstr("gantry --help"));
}

// Completion offers every command and flag that --help shows.
TEST(Gantry, AWordThatIsNotExpectedIsNamedWithWhatHelps) {
  const auto command = test::run_cli({"gantry", "share", "bogus"});
  EXPECT_THAT(command.err, HasSubstr("there is no command `bogus`"));
  EXPECT_THAT(command.err, HasSubstr("gantry share --help"));
  const auto option = test::run_cli({"gantry", "share", "set", "blue", "--gpu", "2"});
  EXPECT_EQ(option.status, 2);
  EXPECT_THAT(option.err, HasSubstr("unexpected argument: --gpu 2"));
  EXPECT_THAT(option.err, HasSubstr("gantry share set --help"));
  const auto before = test::run_cli({"gantry", "share", "run", "nvidia-smi", "-L"});
  EXPECT_THAT(before.err, HasSubstr("gantry share run [OPTIONS] -- COMMAND"));
}

// A function for shells that answers `gantry complete KIND` as this program does.
std::string complete_function() {
  std::string function = "gantry() { case $2 in ";
  for (const auto* kind : {"machines", "checks", "engines", "distributions", "shares", "shells"}) {
    const auto names = run_cli({"gantry", "complete", kind}).out;
    function += fmt::format("{}) echo '{}';; ", kind, names);
  }
  return function + "esac; }; ";
}

// What bash offers after these words.
std::string offered(const std::string& words) {
  test::Tree tree;
  tree.file("gantry.bash", run_cli({"gantry", "completion", "bash"}).out);
  const auto script = complete_function() + "source " + tree.path("gantry.bash") +
                      "; COMP_WORDS=(" + words +
                      "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _gantry; echo ${COMPREPLY[*]}";
  return sys::run_command({"bash", "-c", script}, std::chrono::seconds(20))->output;
}

TEST(Completion, BashOffersCommandsAndFlags) {
  EXPECT_EQ(offered("gantry comp"), "completion\n");
  EXPECT_THAT(offered("gantry completion --"), HasSubstr("--help"));
}

TEST(Completion, BashLeavesValuesAndCommandsToTheShell) {
  EXPECT_EQ(offered("gantry inspect --kubeconfig ''"), "\n") << "a file, and no flag";
  EXPECT_THAT(offered("gantry inspect --json ''"), HasSubstr("--kubeconfig"));
  EXPECT_THAT(offered("gantry share run -- bas"), HasSubstr("bash"));
  EXPECT_EQ(offered("gantry share run -- bash --r"), "\n") << "the command's own flags";
  EXPECT_THAT(offered("gantry scheduler --"), Not(HasSubstr("--node-lock-timeout"))) << "hidden";
}

TEST(Completion, ZshAcceptsItsScript) {
  test::Tree tree;
  tree.file("_gantry", run_cli({"gantry", "completion", "zsh"}).out);
  const auto check =
      sys::run_command({"zsh", "-n", tree.path("_gantry")}, std::chrono::seconds(20));
  ASSERT_TRUE(check.ok());
  if (check->status == 127) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(check->status, 0) << check->output;
}

TEST(Completion, OtherShellsAreAUsageError) {
  EXPECT_EQ(run_cli({"gantry", "completion", "csh"}).status, 2);
}

// The script asks `gantry`, so this program stands in for it.
TEST(Completion, BashOffersValues) {
  EXPECT_THAT(offered("gantry sim create h200x8-f"), HasSubstr("h200x8-fabric"));
  EXPECT_EQ(offered("gantry sim create --fo"), "--force\n");
  EXPECT_EQ(offered("gantry runtime configure --runtime cont"), "containerd\n");
  EXPECT_EQ(offered("gantry runtime configure --runtime = cont"), "containerd\n");
  EXPECT_EQ(offered("gantry doctor --explain numa.u"), "numa.unknown\n");
  EXPECT_EQ(offered("gantry completion f"), "fish\n");
}

// A machine that has two shares.
class SharesToComplete {
 public:
  SharesToComplete() {
    tree_.directory("run/gantry/shares/blue").directory("run/gantry/shares/green");
    ::setenv("GANTRY_ROOT", tree_.root().c_str(), 1);
  }
  SharesToComplete(const SharesToComplete&) = delete;
  SharesToComplete& operator=(const SharesToComplete&) = delete;
  ~SharesToComplete() { ::unsetenv("GANTRY_ROOT"); }

 private:
  test::Tree tree_;
};

TEST(Completion, BashOffersNamesOfShares) {
  const SharesToComplete shares;
  for (const auto* command : {"rm", "set", "explain"}) {
    EXPECT_EQ(offered(fmt::format("gantry share {} ''", command)), "blue green\n") << command;
    EXPECT_EQ(offered(fmt::format("gantry share {} gr", command)), "green\n") << command;
  }
  EXPECT_THAT(offered("gantry share create ''"), Not(HasSubstr("blue"))) << "it needs a new name";
}

// What the function of zsh offers after these words. zsh itself takes those that fit the last word.
std::optional<std::string> offered_by_zsh(const std::string& words) {
  test::Tree tree;
  tree.file("_gantry", run_cli({"gantry", "completion", "zsh"}).out);
  const auto script = complete_function() +
                      "compdef() { :; }; compadd() { shift; print -r -- \"$@\"; }; "
                      "_files() { print files; }; _command_names() { print commands; }; source " +
                      tree.path("_gantry") + "; words=(" + words + "); CURRENT=$#words; _gantry";
  const auto ran = sys::run_command({"zsh", "-f", "-c", script}, std::chrono::seconds(20));
  if (!ran.ok() || ran->status == 127) return std::nullopt;
  return ran->output;
}

TEST(Completion, ZshOffersCommandsFlagsAndValues) {
  const SharesToComplete shares;
  const auto removed = offered_by_zsh("gantry share rm ''");
  if (!removed) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(*removed, "blue green\n");
  EXPECT_THAT(*offered_by_zsh("gantry ''"), HasSubstr("completion"));
  EXPECT_THAT(*offered_by_zsh("gantry sim create ''"), HasSubstr("h200x8-fabric"));
  EXPECT_THAT(*offered_by_zsh("gantry sim create --"), HasSubstr("--force"));
  EXPECT_THAT(*offered_by_zsh("gantry runtime configure --runtime ''"), HasSubstr("containerd"));
  EXPECT_EQ(*offered_by_zsh("gantry sim state --root ''"), "files\n");
  EXPECT_EQ(*offered_by_zsh("gantry share run -- ''"), "commands\n");
}

// Every command and option that the scripts have values for exists.
TEST(Completion, ValuesBelongToCommandsThatExist) {
  const auto zsh = run_cli({"gantry", "completion", "zsh"}).out;
  const auto begin = zsh.find("_gantry_kinds=(");
  const auto kinds = zsh.substr(begin, zsh.find("\n)", begin) - begin);
  for (const auto line : lines(kinds)) {
    const auto parts = split(line, '\'');
    if (parts.size() < 4) continue;
    const auto command = std::string(parts[1].substr(0, parts[1].find(" --")));
    const auto option = parts[1].substr(parts[1].rfind(' ') + 1);
    const auto row = zsh.find("  '" + std::string(trim(command)) + "' '");
    ASSERT_NE(row, std::string::npos) << command;
    EXPECT_THAT(zsh.substr(row, zsh.find('\n', row) - row), HasSubstr(std::string(option)));
    EXPECT_EQ(run_cli({"gantry", "complete", std::string(parts[3])}).status, 0) << parts[3];
  }
}

TEST(Completion, FishAcceptsItsScriptAndOffersValues) {
  test::Tree tree;
  const auto script = run_cli({"gantry", "completion", "fish"}).out;
  EXPECT_THAT(script, HasSubstr("-n '__gantry_at gantry sim create' -a '(gantry complete mach"));
  EXPECT_THAT(script, HasSubstr("-n '__gantry_at gantry doctor' -l only -r -f -a '(gantry compl"));
  tree.file("gantry.fish", script);
  const auto check =
      sys::run_command({"fish", "-n", tree.path("gantry.fish")}, std::chrono::seconds(20));
  ASSERT_TRUE(check.ok());
  if (check->status == 127) GTEST_SKIP() << "fish is not installed";
  EXPECT_EQ(check->status, 0) << check->output;
}

TEST(ManPage, IsCleanRoff) {
  test::Tree tree;
  tree.file("gantry.1", run_cli({"gantry", "man-page"}).out);
  const auto check = sys::run_command(
      {"groff", "-man", "-ww", "-z", "-Tutf8", tree.path("gantry.1")}, std::chrono::seconds(20));
  ASSERT_TRUE(check.ok());
  if (check->status == 127) GTEST_SKIP() << "groff is not installed";
  EXPECT_EQ(check->output, "");
}

}  // namespace
}  // namespace gantry::cli
