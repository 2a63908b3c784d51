// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_record.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;

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

TEST(DoctorCommand, WaitsForNvmlNoLongerThanTold) {
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
  EXPECT_THAT(run.out, HasSubstr("sudo modprobe nvidia"));
}

}  // namespace
}  // namespace gantry::cli
