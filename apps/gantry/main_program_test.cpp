// SPDX-License-Identifier: Apache-2.0
#include "gantry/main_program.hpp"

#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;

TEST(Gantry, HelpIsNotAnError) {
  const auto run = run_cli({"gantry", "--help"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, HasSubstr("Usage: gantry"));
}

TEST(Gantry, TellsItsVersion) {
  EXPECT_THAT(run_cli({"gantry", "--version"}).out, HasSubstr("gantry " GANTRY_VERSION));
}

TEST(Gantry, AnUnknownCommandIsAUsageError) {
  const auto run = run_cli({"gantry", "no-such-command"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("gantry --help"));
}

}  // namespace
}  // namespace gantry::cli
