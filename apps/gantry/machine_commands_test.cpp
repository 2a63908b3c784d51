// SPDX-License-Identifier: Apache-2.0
// info, list and topo on whole machines.
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

using test::Machine;
using test::run_cli;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Info, ShowsEveryGpuOfAHealthyMachine) {
  const Machine machine("h200x8");
  const auto run = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("8 GPUs, NVIDIA driver 580.159.04"));
  EXPECT_THAT(run.out, HasSubstr("CUDA 13.0"));
  EXPECT_THAT(run.out, HasSubstr("143771 MiB"));
  EXPECT_THAT(run.out, Not(HasSubstr("disagree")));
}

TEST(Info, WorksWithoutNvml) {
  const Machine machine("h200x8");
  const auto run = run_cli({"gantry", "info", "--no-nvml", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("NVIDIA H200"));
}

TEST(Info, TellsWhoHoldsTheCardInstead) {
  const Machine machine("nouveau");
  const auto run = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("nouveau"));
  EXPECT_THAT(run.err, HasSubstr("gantry doctor"));
}

TEST(Info, JsonIsTheInventory) {
  const Machine machine("h200");
  const auto run = run_cli({"gantry", "info", "--json", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"schema\": 1"));
  EXPECT_THAT(run.out, HasSubstr("\"numa_node\": null"));
}

TEST(Info, ARootThatIsNoMachineIsAnError) {
  const test::Tree tree;
  const auto run = run_cli({"gantry", "info", "--root", tree.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("not the root of a machine"));
  EXPECT_EQ(run_cli({"gantry", "info", "--root", tree.path("nowhere")}).status, 1);
}

TEST(Info, AFlagBeatsTheEnvironment) {
  const Machine machine("h200");
  const Machine other("h200x8");
  ::setenv("GANTRY_ROOT", other.root().c_str(), 1);
  const auto by_flag = run_cli({"gantry", "info", "--no-nvml", "--root", machine.root()});
  const auto by_environment = run_cli({"gantry", "info", "--no-nvml"});
  ::unsetenv("GANTRY_ROOT");
  EXPECT_THAT(by_flag.out, HasSubstr("1 GPU,"));
  EXPECT_THAT(by_environment.out, HasSubstr("8 GPUs,"));
}

TEST(Topo, ShowsNvlinksThroughTheSwitch) {
  const Machine machine("h200x8");
  const auto run = run_cli({"gantry", "topo", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("GPU0  X     NV18"));
  EXPECT_THAT(run.out, HasSubstr("NVSwitch"));
}

TEST(Topo, JsonHasTheMatrixAndNoFiles) {
  const Machine machine("h200");
  const auto run = run_cli({"gantry", "topo", "--json", "--root", machine.root()});
  EXPECT_THAT(run.out, HasSubstr("\"links\""));
  EXPECT_THAT(run.out, Not(HasSubstr("\"files\"")));
}

TEST(List, SaysWhyEachFileIsThere) {
  const Machine machine("h200");
  const auto run = run_cli({"gantry", "list", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("/usr/local/nvidia/lib64/libcuda.so.580.159.04"));
  EXPECT_THAT(run.out, HasSubstr("/dev/nvidia-uvm"));
  EXPECT_THAT(run.out, HasSubstr("compute"));
}

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

}  // namespace
}  // namespace gantry::cli
