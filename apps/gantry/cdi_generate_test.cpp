// SPDX-License-Identifier: Apache-2.0
#include "support/machine.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(CdiGenerate, PrintsTheSpecificationAndPreparesWhatItMounts) {
  const test::Machine machine("h200");
  const auto run = run_cli({"gantry", "cdi", "generate", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("kind: nvidia.com/gpu"), HasSubstr("name: \"0\"")));
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_TRUE(machine.host().exists("/var/lib/gantry/driver/current/manifest.json"));
}

TEST(CdiGenerate, ASimulatedTreeIsMountedFromWhereItIs) {
  const test::Machine machine("h200");
  const auto run = run_cli({"gantry", "cdi", "generate", "--root", machine.root()});
  EXPECT_THAT(run.out, HasSubstr("hostPath: " + machine.root() + "/dev/nvidia0"));
  const auto plain =
      run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--engine-root", "/"});
  EXPECT_THAT(plain.out, Not(HasSubstr(machine.root())));
}

TEST(CdiGenerate, WritesTheFileThatWasNamed) {
  const test::Machine machine("h200");
  const auto file = machine.path("/out/nvidia.json");
  const auto run =
      run_cli({"nvidia-ctk", "cdi", "generate", "--driver-root", machine.root(), "--output", file});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(*machine.host().read("/out/nvidia.json"), HasSubstr("\"kind\": \"nvidia.com/gpu\""));
}

TEST(CdiGenerate, AWrongDeviceIsAnsweredWithThoseThereAre) {
  const test::Machine machine("h200");
  const auto run =
      run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--device-id", "4"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("there is no GPU \"4\" on this machine; it has 0 (GPU-"));
  EXPECT_THAT(run.out, IsEmpty());
}

TEST(CdiGenerate, WhatWasNotFoundIsToldOnlyWhenAsked) {
  const test::Machine machine("k80");
  const std::vector<std::string> words{"gantry", "cdi", "generate", "--root", machine.root()};
  EXPECT_THAT(run_cli(words).err, Not(HasSubstr("Not found")));
  auto verbose = words;
  verbose.emplace_back("--verbose");
  EXPECT_THAT(run_cli(verbose).err, HasSubstr("Not found: "));
}

TEST(CdiGenerate, FlagsOfNvidiasToolAreTaken) {
  const test::Machine machine("h200");
  const auto run = run_cli({"nvidia-ctk",
                            "cdi",
                            "generate",
                            "--driver-root",
                            machine.root(),
                            "--device-name-strategy=type-index",
                            "--no-all-device",
                            "--vendor",
                            "example.com",
                            "--class",
                            "device",
                            "--ldconfig-path",
                            "/sbin/ldconfig",
                            "--library-search-path",
                            "/usr/lib",
                            "--feature-flag",
                            "disable-nvsandboxutils",
                            "--disable-hook",
                            "all",
                            "--format",
                            "json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"example.com/device\""), HasSubstr("\"gpu0\""),
                             Not(HasSubstr("\"all\""))));
}

TEST(CdiRefresh, WritesAllThreeAndSaysSo) {
  const test::Machine machine("h200x8");
  const std::vector<std::string> words{"gantry",    "cdi",    "refresh",
                                       "--no-nvml", "--root", machine.root()};
  const auto first = run_cli(words);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("new, hard links"), HasSubstr("17 devices, written")));
  EXPECT_THAT(run_cli(words).out,
              AllOf(HasSubstr("as it was"), HasSubstr("17 devices, as it was")));
}

TEST(CdiRefresh, AMachineWithoutADriverIsAnErrorAndNoEmptyFile) {
  const test::Machine machine("nouveau");
  const auto run = run_cli({"gantry", "cdi", "refresh", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("no GPU that a container could use"));
  EXPECT_FALSE(machine.host().exists("/var/run/cdi/nvidia.yaml"));
}

}  // namespace
}  // namespace gantry::cli
