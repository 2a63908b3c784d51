// SPDX-License-Identifier: Apache-2.0
// info, list and topo on whole machines.
#include "sim/machine/inject.hpp"
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
using ::testing::ContainsRegex;
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

TEST(Info, LoadAddsWhatEachGpuDoesNow) {
  const Machine machine("h200");
  const auto plain = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_THAT(plain.out, Not(HasSubstr("UTILISATION")));
  const auto loaded = run_cli({"gantry", "info", "--load", "--root", machine.root()});
  EXPECT_THAT(loaded.out, ContainsRegex("GPU +UTILISATION +MEMORY USED +POWER +LIMIT +TEMPERATURE\n"
                                        "0 +0 % +[0-9]+ MiB +[0-9.]+ W +[0-9.]+ W +[0-9]+ C\n"));
}

TEST(Info, DoesNotCountInstancesThatOnlyNvmlCouldList) {
  Machine machine("mismatch");  // NVML does not start
  const auto base = "/proc/driver/nvidia/capabilities/gpu0/mig/gi1";
  machine.file(std::string(base) + "/access", "DeviceFileMinor: 12\n");
  machine.file(std::string(base) + "/ci0/access", "DeviceFileMinor: 13\n");
  const auto run = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_THAT(run.out, HasSubstr("on, instances ?"));
  EXPECT_THAT(run.out, Not(HasSubstr("0 instances")));
}

TEST(Info, WorksWithoutNvml) {
  const Machine machine("h200x8");
  const auto run = run_cli({"gantry", "info", "--no-nvml", "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("NVIDIA H200"));
}

TEST(Info, AFileOfTheMachineCannotCommandTheTerminal) {
  Machine machine("h200");
  machine.file("/proc/driver/nvidia/gpus/0000:00:06.0/information", "Model: \033[2JEvil\n");
  const auto run = run_cli({"gantry", "info", "--no-nvml", "--root", machine.root()});
  EXPECT_THAT(run.out, HasSubstr("\\x1b[2JEvil"));
  EXPECT_THAT(run.out, Not(HasSubstr("\033")));
}

TEST(Info, AGarbledInformationFileIsADifferenceAndAQuestionMark) {
  Machine machine("h200");
  machine.file("/proc/driver/nvidia/gpus/0000:00:06.0/information", "\x01garbage\n");
  const auto with = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_THAT(with.out, HasSubstr("disagree on GPU 0000:00:06.0: name: kernel says nothing, NVML "
                                  "says NVIDIA H200"));
  EXPECT_THAT(with.out, HasSubstr("information does not say: Model, GPU UUID, Device Minor"));
  const auto without = run_cli({"gantry", "info", "--no-nvml", "--root", machine.root()});
  EXPECT_THAT(without.out, HasSubstr("0    ?     ?       0000:00:06.0"));
  EXPECT_THAT(without.out, HasSubstr("\"?\" marks values that only NVML has"));
}

TEST(Info, AFunctionThatIsGoneFromSysfsIsADifference) {
  Machine machine("h200");
  machine.remove("/sys/bus/pci/devices/0000:00:06.0");
  const auto run = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_THAT(run.out, HasSubstr("disagree on GPU 0000:00:06.0: PCI function in /sys: kernel says "
                                 "absent, NVML says present"));
  const auto without = run_cli({"gantry", "info", "--no-nvml", "--root", machine.root()});
  EXPECT_THAT(without.out, HasSubstr("/sys/bus/pci/devices/0000:00:06.0 does not exist"));
}

TEST(Info, WhatAllGpusSufferFromIsSaidOnce) {
  const Machine machine("fabric-down");
  const auto run = run_cli({"gantry", "info", "--root", machine.root()});
  const std::string sentence = "the NVSwitch fabric is not ready";
  const auto first = run.out.find(sentence);
  ASSERT_NE(first, std::string::npos) << run.out;
  EXPECT_EQ(run.out.find(sentence, first + 1), std::string::npos) << run.out;
  EXPECT_THAT(run.out, HasSubstr("GPU 0, 1, 2, 3, 4, 5, 6, 7: "));
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

TEST(Topo, DoesNotPromiseLinksOfALostGpu) {
  const Machine machine("h200x8");
  ASSERT_TRUE(sim::inject_lost(machine.root(), 3).ok());
  const auto run = run_cli({"gantry", "topo", "--root", machine.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("The NVLinks of GPU3 are unknown: lost: "));
  EXPECT_THAT(run.out, Not(HasSubstr("every pair can use all")));
}

TEST(Topo, ListAndInfoWaitNoLongerThanTheDeadline) {
  const Machine machine("h200");
  ASSERT_TRUE(
      sim::inject_fault(machine.root(), {.function = "nvmlInit_v2", .delay_ms = 60'000}).ok());
  for (const char* command : {"topo", "list", "info"}) {
    const auto run =
        run_cli({"gantry", command, "--deadline", "0.2", "--root", machine.root(), "--json"});
    EXPECT_TRUE(run.out.find("\"generation\"") != std::string::npos) << command;
    EXPECT_EQ(run.status, std::string(command) == "list" ? 0 : 1) << command;
  }
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

}  // namespace
}  // namespace gantry::cli
