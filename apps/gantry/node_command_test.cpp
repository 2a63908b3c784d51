// SPDX-License-Identifier: Apache-2.0
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::HasSubstr;

TEST(NodeCommand, UpAndDownAreTables) {
  test::Machine machine("h200x8");
  machine.file("/usr/bin/dockerd", "");
  const auto dry = run_cli({"gantry", "node", "up", "--dry-run", "--root", machine.root()});
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("would be written"));
  const auto up = run_cli({"gantry", "node", "up", "--root", machine.root()});
  EXPECT_EQ(up.status, 0) << up.err;
  EXPECT_THAT(up.out, HasSubstr("STEP"));
  EXPECT_THAT(up.out, HasSubstr("To undo this: sudo gantry node down"));
  const auto down = run_cli({"gantry", "node", "down", "--root", machine.root()});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_FALSE(machine.host().exists("/etc/docker/daemon.json"));
  const auto again = run_cli({"gantry", "node", "down", "--root", machine.root()});
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("has changed nothing"));
}

}  // namespace
}  // namespace gantry::cli
