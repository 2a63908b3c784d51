// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/command_line.hpp"

#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

TEST(CommandLine, TheBundleIsReadInEverySpelling) {
  using Arguments = std::vector<std::string_view>;
  for (const Arguments& spelled : {Arguments{"--bundle", "/b"},
                                   {"--bundle=/b"},
                                   {"-bundle", "/b"},
                                   {"-bundle=/b"},
                                   {"-b", "/b"},
                                   {"-b=/b"},
                                   {"-b/b"},
                                   {"--b", "/b"},
                                   {"-b", "/a", "--bundle", "/b"}}) {
    Arguments arguments{"create"};
    arguments.insert(arguments.end(), spelled.begin(), spelled.end());
    arguments.push_back("id");
    const auto line = parse_command_line(arguments);
    EXPECT_EQ(line.bundle, "/b") << spelled[0];
    EXPECT_EQ(line.id, "id") << spelled[0];
  }
}

TEST(CommandLine, GlobalFlagsWithValuesAreSteppedOver) {
  const auto line = parse_command_line({"--root", "create", "--log=/l", "--log-format", "json",
                                        "--systemd-cgroup", "run", "-d", "--pid-file", "/p",
                                        "--console-socket", "run", "--bundle", "/b", "c1"});
  EXPECT_EQ(line, (CommandLine{.command = "run",
                               .id = "c1",
                               .bundle = "/b",
                               .config = {},
                               .root = "create",
                               .log = "/l",
                               .log_format = "json"}));
}

TEST(CommandLine, AContainerNamedCreateIsNoCommand) {
  const auto line = parse_command_line({"--log", "create", "start", "create"});
  EXPECT_EQ(line.command, "start");
  EXPECT_EQ(line.id, "create");
  EXPECT_FALSE(line.creates());
}

// The low-level runtime prints its help; there may be no bundle to read.
TEST(CommandLine, CreateWithHelpCreatesNothing) {
  for (const auto* word : {"--help", "-h", "-help", "--usage", "-?"}) {
    EXPECT_FALSE(parse_command_line({"create", word}).creates()) << word;
    EXPECT_FALSE(parse_command_line({"run", "-b", "/b", word}).creates()) << word;
  }
  EXPECT_TRUE(parse_command_line({"create", "--bundle", "--help", "id"}).creates());
  EXPECT_TRUE(parse_command_line({"create", "--help=false", "id"}).creates());
  EXPECT_TRUE(parse_command_line({"create", "--", "--help"}).creates());
}

TEST(CommandLine, FlagsAfterTheIdCountToo) {
  const auto line = parse_command_line({"create", "id", "--bundle", "/b"});
  EXPECT_EQ(line.bundle, "/b");
  EXPECT_EQ(line.id, "id");
}

TEST(CommandLine, AfterTwoDashesThereAreNoFlags) {
  const auto line = parse_command_line({"create", "--", "-b", "/b"});
  EXPECT_EQ(line.bundle, "");
  EXPECT_EQ(line.id, "-b");
}

TEST(CommandLine, CrunsOwnFlags) {
  const auto line = parse_command_line({"--cgroup-manager", "disabled", "--log", "file:/l", "run",
                                        "-f", "other.json", "--preserve-fds", "3", "id"});
  EXPECT_EQ(line.command, "run");
  EXPECT_EQ(line.config, "other.json");
  EXPECT_EQ(line.log, "/l");
  EXPECT_EQ(line.id, "id");
}

TEST(CommandLine, FlagsOfOtherCommandsAreTheirOwn) {
  const auto line = parse_command_line({"exec", "--process", "/p", "-b", "x", "id"});
  EXPECT_EQ(line.bundle, "");
}

TEST(CommandLine, VersionCountsBeforeACommandOnly) {
  EXPECT_TRUE(parse_command_line({"--version"}).version);
  EXPECT_TRUE(parse_command_line({"-v"}).version);
  EXPECT_FALSE(parse_command_line({"create", "--version"}).version);
}

TEST(CommandLine, NothingAtAllAndHalfFlagsAreNoTrouble) {
  EXPECT_EQ(parse_command_line({}), CommandLine{});
  EXPECT_EQ(parse_command_line({"--log"}).log, "");
  EXPECT_EQ(parse_command_line({"create", "--bundle"}).bundle, "");
  EXPECT_EQ(parse_command_line({"-"}).command, "-");
  EXPECT_EQ(parse_command_line({"--"}).command, "");
}

}  // namespace
}  // namespace gantry::runtime
