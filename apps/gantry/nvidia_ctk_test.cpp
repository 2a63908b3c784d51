// SPDX-License-Identifier: Apache-2.0
#include "support/run_cli.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::HasSubstr;

TEST(NvidiaCtk, IsGantryUnderAnotherName) {
  const auto run = run_cli({"/usr/bin/nvidia-ctk", "--version"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, HasSubstr("NVIDIA Container Toolkit CLI version"));
  EXPECT_THAT(run.out, HasSubstr("gantry"));
}

TEST(NvidiaCtk, SpeaksOfItselfInErrors) {
  const auto run = run_cli({"nvidia-ctk", "no-such-command"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("nvidia-ctk: there is no command `no-such-command`"));
}

TEST(NvidiaCtk, TakesItsGlobalFlags) {
  EXPECT_EQ(run_cli({"nvidia-ctk", "--debug", "--quiet", "--config=/x", "cdi", "--help"}).status,
            0);
}

}  // namespace
}  // namespace gantry::cli
