// SPDX-License-Identifier: Apache-2.0
#include "gantry/container_cli.hpp"

#include "base/core/text.hpp"
#include "gpu/abi/nvml.h"
#include "sim/machine/inject.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using test::Machine;
using test::run_cli;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ContainerCli, AnswersUnderItsName) {
  const Machine machine("h200");
  const auto run = run_cli({"/usr/bin/nvidia-container-cli", "--root=" + machine.root(), "info"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out,
              ::testing::StartsWith(
                  "NVRM version:   580.159.04\nCUDA version:   13.0\n\nDevice Index:   0\n"));
}

TEST(ContainerCli, RefusesAnUnknownDevice) {
  const Machine machine("h200");
  const auto run =
      run_cli({"nvidia-container-cli", "--root", machine.root(), "list", "--device", "5"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("device error: 5: unknown device id"));
}

TEST(ContainerCli, AcceptsTheFlagsThatHooksPass) {
  const Machine machine("h200");
  const auto run =
      run_cli({"nvidia-container-cli", "--load-kmods", "--no-pivot", "--debug=/dev/stderr",
               "--ldcache=/etc/ld.so.cache", "--root", machine.root(), "-u", "info", "--csv"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(
      run.out,
      HasSubstr("Device Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture\n"));
}

TEST(ContainerCli, TellsAllOfItsVersion) {
  const auto run = run_cli({"nvidia-container-cli", "-V"});
  EXPECT_EQ(run.status, 0);
  std::vector<std::string> keys;
  for (const auto line : lines(run.out)) keys.emplace_back(line.substr(0, line.find(": ")));
  EXPECT_THAT(keys,
              ::testing::ElementsAre("cli-version", "lib-version", "build date", "build revision",
                                     "build compiler", "build platform", "build flags"));
}

std::string refusal(const Machine& machine, std::vector<std::string> words) {
  std::vector<std::string> all = {"nvidia-container-cli", "--root", machine.root(), "list"};
  all.insert(all.end(), words.begin(), words.end());
  const auto run = run_cli(all);
  EXPECT_EQ(run.status, 1) << run.out;
  EXPECT_THAT(run.out, IsEmpty());
  return run.err;
}

TEST(ContainerCli, SaysWhatIsWrongWithAValue) {
  const Machine machine("t4x4");
  EXPECT_THAT(refusal(machine, {"-d", ""}), HasSubstr("device error: an empty device id"));
  EXPECT_THAT(refusal(machine, {"-d", "0,"}), HasSubstr("device error: an empty device id"));
  EXPECT_THAT(refusal(machine, {"--imex-channel", "many"}),
              HasSubstr("device error: \"many\" is not an IMEX channel"));
  EXPECT_THAT(refusal(machine, {"--imex-channel", "-1"}), HasSubstr("is not an IMEX channel"));
  EXPECT_THAT(refusal(machine, {"--mig-config", "9"}),
              HasSubstr("device error: 9: unknown device id"));
  EXPECT_THAT(refusal(machine, {"--mig-monitor", "0"}), HasSubstr("cannot be split"));
}

TEST(ContainerCli, TakesValuesThatAreRight) {
  const Machine machine("a100x8");
  const auto run = run_cli({"nvidia-container-cli", "--root", machine.root(), "list",
                            "--mig-config", "all", "--imex-channel", "7"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("/proc/driver/nvidia/capabilities/mig/config\n"));
  EXPECT_THAT(run.out, HasSubstr("/dev/nvidia-caps-imex-channels/channel7\n"));
}

TEST(ContainerCli, ListsALostGpuAndSaysSo) {
  const Machine machine("h200x8");
  ASSERT_TRUE(sim::inject_lost(machine.root(), 3).ok());
  const auto run = run_cli({"nvidia-container-cli", "--root", machine.root(), "info"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Device Index:   3\n"));
  EXPECT_THAT(run.err, HasSubstr("warning: GPU 3 at "));
  EXPECT_THAT(run.err, HasSubstr("is lost: "));
}

std::string initialization_error(const Machine& machine) {
  const auto taken = probe::take_snapshot(machine.host(), {.deadline = 1s});
  if (!taken.ok()) return taken.error().text();
  const auto failure = initialization_failure(*taken);
  return failure ? failure->error : "";
}

TEST(ContainerCli, ADriverThatHangsTimesOut) {
  const Machine silent("h200");
  ASSERT_TRUE(
      sim::inject_fault(silent.root(), {.function = "nvmlInit_v2", .delay_ms = 60'000}).ok());
  EXPECT_EQ(initialization_error(silent), "initialization error: driver rpc error: timed out");
}

TEST(ContainerCli, NvmlsCodeDecidesWhichErrorIsSaid) {
  const Machine healthy("h200");
  EXPECT_EQ(initialization_error(healthy), "");
  const Machine late("h200");
  ASSERT_TRUE(
      sim::inject_fault(late.root(), {.function = "nvmlInit_v2", .result = NVML_ERROR_TIMEOUT})
          .ok());
  EXPECT_EQ(initialization_error(late), "initialization error: driver rpc error: timed out");
  const Machine mismatch("mismatch");
  EXPECT_EQ(initialization_error(mismatch),
            "initialization error: nvml error: driver/library version mismatch");
  const Machine unknown("h200");
  ASSERT_TRUE(
      sim::inject_fault(unknown.root(), {.function = "nvmlInit_v2", .result = NVML_ERROR_UNKNOWN})
          .ok());
  EXPECT_THAT(initialization_error(unknown), HasSubstr("nvml error: nvmlInit_v2: NVML_ERROR_UNK"));
}

TEST(ContainerCli, AddsWhatItFoundToTheDebugFile) {
  const Machine machine("h200");
  const test::Tree place;
  const auto file = place.path("debug.log");
  for (int i = 0; i < 2; ++i) {
    const auto run =
        run_cli({"nvidia-container-cli", "-d", file, "--root", machine.root(), "info"});
    EXPECT_EQ(run.status, 0) << run.err;
  }
  const auto log = place.host().read("/debug.log");
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(*log,
              HasSubstr(R"(gantry] driver kernel_module="580.159.04" libraries="580.159.04")"));
  const auto first = log->find(R"(GPU index=0 uuid="GPU-)");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(log->find(R"(GPU index=0 uuid="GPU-)", first + 1), std::string::npos);
  const auto run = run_cli({"nvidia-container-cli", "-d", place.path("no/where"), "info"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("initialization error: open the debug file"));
}

TEST(ContainerCli, ReadsTheLoadersCacheThatIsNamed) {
  Machine machine("h200");
  const auto bytes = machine.host().read("/etc/ld.so.cache");
  ASSERT_TRUE(bytes.ok());
  machine.file("/etc/moved.cache", *bytes).remove("/etc/ld.so.cache");
  const test::Tree place;
  const auto log_of = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"nvidia-container-cli", "-d", place.path(name), "--root",
                                      machine.root()};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run_cli(words).status, 0);
    return place.host().read("/" + name).value_or("");
  };
  EXPECT_TRUE(log_of("with", {"--ldcache=/etc/moved.cache", "info"})
                  .find("in ld.so.cache as libcuda.so.1") != std::string::npos);
  EXPECT_TRUE(log_of("without", {"info"}).find("in ld.so.cache") == std::string::npos);
}

TEST(ContainerCli, AMissingOrDamagedCacheIsAnError) {
  Machine machine("h200");
  machine.file("/etc/bad.cache", "no cache at all");
  for (const char* path : {"/etc/none.cache", "/etc/bad.cache"}) {
    const auto run = run_cli(
        {"nvidia-container-cli", "--root", machine.root(), "-l", path, "list", "-d", "all"});
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr("ldcache error: "));
    EXPECT_THAT(run.err, HasSubstr(path));
  }
}

}  // namespace
}  // namespace gantry::cli
