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

TEST(CdiGenerate, ReportsMissingFilesOnlyWhenAsked) {
  const test::Machine machine("k80");
  const std::vector<std::string> words{"gantry", "cdi", "generate", "--root", machine.root()};
  EXPECT_THAT(run_cli(words).err, Not(HasSubstr("Not found")));
  auto verbose = words;
  verbose.emplace_back("--verbose");
  EXPECT_THAT(run_cli(verbose).err, HasSubstr("Not found: "));
}

TEST(CdiGenerate, FlagsOfNvidiasToolAreTaken) {
  const test::Machine machine("h200");
  const auto run =
      run_cli({"nvidia-ctk", "cdi", "generate", "--driver-root", machine.root(),
               "--device-name-strategy=type-index", "--no-all-device", "--vendor", "example.com",
               "--class", "device", "--ldconfig-path", "/sbin/ldconfig", "--feature-flag",
               "disable-nvsandboxutils", "--disable-hook", "all", "--format", "json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"example.com/device\""), HasSubstr("\"gpu0\""),
                             Not(HasSubstr("\"all\""))));
}

constexpr const char* kTheirs =
    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- {name: all, containerEdits: {env: "
    "[A=b]}}\n";

TEST(CdiGenerate, AFileOfGantrysIsNotAnotherToolsToRefresh) {
  const test::Machine machine("h200");
  const auto file = machine.path("/etc/cdi/nvidia.yaml");
  const auto made =
      run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--output", file});
  EXPECT_EQ(made.status, 0) << made.err;
  const auto run = run_cli({"gantry", "cdi", "refresh", "--no-nvml", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("also written by gantry and is now hidden by"));
  EXPECT_THAT(run.err, HasSubstr("sudo rm " + file));
}

TEST(CdiGenerate, AnotherToolsFileIsNamedAndTakenOverWhenAsked) {
  test::Machine machine("h200");
  machine.file("/etc/cdi/theirs.yaml", kTheirs);
  const auto file = machine.path("/etc/cdi/nvidia.yaml");
  std::vector<std::string> words{"gantry", "cdi", "generate", "--root", machine.root(), "-o", file};
  const auto refused = run_cli(words);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(machine.path("/etc/cdi/theirs.yaml")),
                                 HasSubstr("another tool"), HasSubstr("--take-over")));
  EXPECT_FALSE(machine.host().exists("/etc/cdi/nvidia.yaml"));
  words.emplace_back("--take-over");
  const auto done = run_cli(words);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(machine.host().exists("/etc/cdi/nvidia.yaml"));
  EXPECT_EQ(*machine.host().read("/etc/cdi/theirs.yaml.before-gantry"), kTheirs);
}

TEST(CdiGenerate, UnderNvidiasNameTheFileThatWasNamedIsReplacedAndKept) {
  test::Machine machine("h200");
  machine.file("/etc/cdi/nvidia.yaml", kTheirs);
  const auto run = run_cli({"nvidia-ctk", "cdi", "generate", "--driver-root", machine.root(),
                            "--output", machine.path("/etc/cdi/nvidia.yaml")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("was renamed to"));
  EXPECT_EQ(*machine.host().read("/etc/cdi/nvidia.yaml.before-gantry"), kTheirs);
}

TEST(CdiGenerate, WhatIsPrintedIsOursWhenItIsPutIntoAFile) {
  test::Machine machine("h200");
  const auto run = run_cli({"gantry", "cdi", "generate", "--root", machine.root()});
  machine.file("/var/run/cdi/nvidia.yaml", run.out);
  const auto again = run_cli({"gantry", "cdi", "refresh", "--no-nvml", "--root", machine.root()});
  EXPECT_EQ(again.status, 0) << again.err;
}

TEST(CdiGenerate, AWrongVendorOrClassIsAnError) {
  const test::Machine machine("h200");
  const auto vendor =
      run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--vendor", "1bad"});
  EXPECT_EQ(vendor.status, 1);
  EXPECT_THAT(vendor.err, HasSubstr("vendor \"1bad\" must start with a letter"));
  EXPECT_THAT(vendor.out, IsEmpty());
  EXPECT_EQ(
      run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--class", "a b"}).status, 1);
}

TEST(CdiGenerate, UnknownWordsAreErrorsThatNameTheKnownOnes) {
  const test::Machine machine("h200");
  const auto feature = run_cli(
      {"gantry", "cdi", "generate", "--root", machine.root(), "--feature-flag", "disable-ipc"});
  EXPECT_EQ(feature.status, 1);
  EXPECT_THAT(feature.err, HasSubstr("--feature-flag disable-ipc: use one of disable-ipc-discov"));
  const auto hook =
      run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--disable-hook", "ldcache"});
  EXPECT_EQ(hook.status, 1);
  EXPECT_THAT(hook.err, AllOf(HasSubstr("--disable-hook ldcache"), HasSubstr("update-ldcache")));
}

// The machine's libraries, moved to a tree that has nothing else.
void move_libraries(const test::Machine& machine, const std::string& place) {
  std::filesystem::create_directories(machine.path(place + "/usr/lib"));
  std::filesystem::rename(machine.path("/usr/lib/x86_64-linux-gnu"),
                          machine.path(place + "/usr/lib/x86_64-linux-gnu"));
}

TEST(CdiGenerate, ADriverRootWithFilesAloneServesTheMachineOfTheRoot) {
  const test::Machine machine("h200x8");
  move_libraries(machine, "/opt/tree");
  const auto run = run_cli({"gantry", "cdi", "generate", "--root", machine.root(), "--driver-root",
                            machine.path("/opt/tree")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("hostPath: " + machine.root() + "/dev/nvidia0"));
  EXPECT_TRUE(machine.host().exists("/var/lib/gantry/driver/current/lib64/libcuda.so.1"));
  const auto apart = run_cli({"gantry", "cdi", "generate", "--root", machine.path("/opt"),
                              "--driver-root", machine.path("/usr")});
  EXPECT_EQ(apart.status, 1);
  EXPECT_THAT(apart.err, HasSubstr("has only the driver's files"));
}

TEST(CdiGenerate, LibrariesAreLookedForWhereItWasSaidAndNowhereElse) {
  const test::Machine machine("h200x8");
  move_libraries(machine, "/srv");
  std::vector<std::string> words{"gantry", "cdi", "generate", "--root", machine.root()};
  EXPECT_EQ(run_cli(words).status, 1) << "they are at no known place";
  words.emplace_back("--library-search-path=/srv/usr/lib/x86_64-linux-gnu");
  const auto run = run_cli(words);
  EXPECT_EQ(run.status, 0) << run.err;
  words.back() = "--library-search-path=/srv/usr";
  EXPECT_THAT(run_cli(words).err, HasSubstr("/srv/usr"));
  words.back() = "--library-search-path=srv";
  EXPECT_THAT(run_cli(words).err, HasSubstr("must begin with /"));
}

TEST(CdiRefresh, TheOutputIsWhereTheCallerSeesIt) {
  const test::Machine machine("h200");
  const test::Machine other("h200");
  const auto file = other.path("/out/spec.yaml");
  const auto run = run_cli(
      {"gantry", "cdi", "refresh", "--no-nvml", "--root", machine.root(), "--output", file});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(other.host().exists("/out/spec.yaml"));
  EXPECT_THAT(run.out, HasSubstr(file + ": "));
}

TEST(CdiRefresh, WritesAllThreeAndSaysSo) {
  const test::Machine machine("h200x8");
  const std::vector<std::string> words{"gantry",    "cdi",    "refresh",
                                       "--no-nvml", "--root", machine.root()};
  const auto first = run_cli(words);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("new, hard links"), HasSubstr("17 devices, written")));
  EXPECT_THAT(run_cli(words).out,
              AllOf(HasSubstr("unchanged"), HasSubstr("17 devices, unchanged")));
}

TEST(CdiRefresh, AMachineWithoutADriverIsAnErrorAndNoEmptyFile) {
  const test::Machine machine("nouveau");
  const auto run = run_cli({"gantry", "cdi", "refresh", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("no GPU that a container can use"));
  EXPECT_FALSE(machine.host().exists("/var/run/cdi/nvidia.yaml"));
}

}  // namespace
}  // namespace gantry::cli
