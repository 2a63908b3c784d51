// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include "base/sys/child.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// What bash offers after these words.
std::string offered(const std::string& words) {
  test::Tree tree;
  tree.file("gantry.bash", run_cli({"gantry", "completion", "bash"}).out);
  const auto script = "source " + tree.path("gantry.bash") + "; COMP_WORDS=(" + words +
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
  EXPECT_EQ(run_cli({"gantry", "completion", "fish"}).status, 2);
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
