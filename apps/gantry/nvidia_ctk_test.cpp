// SPDX-License-Identifier: Apache-2.0
#include "support/run_cli.hpp"
#include "support/tree.hpp"

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

// NVIDIA's program takes them in both places.
TEST(NvidiaCtk, TakesItsGlobalFlagsAfterTheCommandToo) {
  const test::Tree tree;
  for (const std::string flag : {"--quiet", "--debug", "-d", "--config=/x"}) {
    EXPECT_EQ(run_cli({"nvidia-ctk", "cdi", "list", "--spec-dir", tree.root(), flag}).status, 0)
        << flag;
    const auto runtime =
        run_cli({"nvidia-ctk", "runtime", "configure", "--dry-run",
                 "--config=" + tree.path("daemon.json"), flag == "--config=/x" ? "--quiet" : flag});
    EXPECT_EQ(runtime.status, 0) << flag << runtime.err;
    EXPECT_EQ(run_cli({"nvidia-ctk", "config", flag == "--config=/x" ? "-d" : flag}).status, 0)
        << flag;
    EXPECT_EQ(run_cli({"nvidia-ctk", "system", flag, "--help"}).status, 0) << flag;
  }
  EXPECT_EQ(run_cli({"nvidia-ctk", "cdi", "list", "--spec-dir", tree.root(), "--quiet"}).err, "");
  EXPECT_EQ(run_cli({"nvidia-ctk", "cdi", "list", "--no-such-flag"}).status, 2);
}

}  // namespace
}  // namespace gantry::cli
