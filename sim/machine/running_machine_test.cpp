// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/running_machine.h"

#include "sim/machine/image.hpp"
#include "sim/machine/machine.hpp"
#include "support/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace gantry::sim {
namespace {

using ::testing::ElementsAre;

// A packaged driver of branch 580 on one of the machines of `gantry sim list`.
std::unique_ptr<struct gantry_sim_image> described(const test::Machine& machine) {
  auto out = std::make_unique<struct gantry_sim_image>();
  const auto cards = all_cards("580");
  EXPECT_TRUE(cards.ok()) << cards.error().text();
  describe_running_machine(**make_image(*cards), machine.root().c_str(), *out);
  return out;
}

std::vector<std::string> names(const struct gantry_sim_image& image) {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < image.machine.gpu_count; ++i)
    all.emplace_back(image.machine.gpu[i].name);
  return all;
}

TEST(AllCards, AreInEachBranch) {
  for (const auto& branch : driver_branches()) {
    const auto cards = all_cards(branch);
    ASSERT_TRUE(cards.ok()) << branch << ": " << cards.error().text();
    EXPECT_GT(cards->gpus.size(), 9U);
  }
  EXPECT_EQ(all_cards("460", "460.91.03")->driver.version, "460.91.03");
  EXPECT_EQ(all_cards("999").error().code(), Errc::NotFound);
}

TEST(RunningMachine, HasTheGpusOfTheKernelWithTheirOwnNames) {
  const test::Machine machine("mixed");
  const auto real = make_image(*load_machine("mixed"));
  const auto image = described(machine);
  ASSERT_EQ(image->machine.gpu_count, (*real)->machine.gpu_count);
  for (std::uint32_t i = 0; i < image->machine.gpu_count; ++i) {
    const auto& ours = image->machine.gpu[i];
    const auto& theirs = (*real)->machine.gpu[i];
    EXPECT_STREQ(ours.name, theirs.name);
    EXPECT_STREQ(ours.uuid, theirs.uuid);
    EXPECT_STREQ(ours.vbios, theirs.vbios);
    EXPECT_EQ(ours.bus, theirs.bus);
    EXPECT_EQ(ours.minor, theirs.minor);
    EXPECT_EQ(ours.numa_node, theirs.numa_node);
    EXPECT_EQ(ours.memory_total_mib, theirs.memory_total_mib);
    EXPECT_EQ(image->state.gpu[i].persistence, 0U);
  }
}

TEST(RunningMachine, MeasuresDistancesBySysfs) {
  for (const auto* name : {"t4x4", "h200x8", "a100x8"}) {
    const test::Machine machine(name);
    const auto real = make_image(*load_machine(name));
    const auto image = described(machine);
    ASSERT_EQ(image->machine.gpu_count, (*real)->machine.gpu_count) << name;
    for (std::uint32_t i = 0; i < image->machine.gpu_count; ++i) {
      for (std::uint32_t j = 0; j < image->machine.gpu_count; ++j)
        EXPECT_EQ(image->machine.topology[i][j], (*real)->machine.topology[i][j])
            << name << ' ' << i << ' ' << j;
    }
  }
}

TEST(RunningMachine, KnowsWhichDriverIsLoaded) {
  const test::Machine machine("k620");
  const auto image = described(machine);
  EXPECT_STREQ(image->machine.kernel_version, "450.66");
  EXPECT_STREQ(image->machine.driver_version, "580.159.04");
  EXPECT_EQ(image->machine.nvidia_major, 195U);
  EXPECT_EQ(image->machine.uvm_major, 235U);
}

TEST(RunningMachine, HasNothingWithoutAKernelModule) {
  test::Machine machine("k620");
  machine.remove("/proc/driver/nvidia");
  const auto image = described(machine);
  EXPECT_STREQ(image->machine.kernel_version, "");
  EXPECT_EQ(image->machine.gpu_count, 0U);
}

TEST(RunningMachine, LeavesOutCardsThatItDoesNotKnow) {
  test::Machine machine("t4x4");
  const std::string address = "0000:3b:00.0";
  machine.file("/proc/driver/nvidia/gpus/" + address + "/information",
               "Model: \t\t Voodoo\nGPU UUID: \t GPU-1\nDevice Minor: \t 0\n");
  EXPECT_EQ(described(machine)->machine.gpu_count, 4U);  // by its id it is a T4
  machine.file("/sys/bus/pci/devices/" + address + "/device", "0x0001\n");
  EXPECT_EQ(described(machine)->machine.gpu_count, 3U);
  machine.file("/proc/driver/nvidia/gpus/" + address + "/information", "nothing\n");
  EXPECT_THAT(names(*described(machine)), ElementsAre("Tesla T4", "Tesla T4", "Tesla T4"));
}

}  // namespace
}  // namespace gantry::sim
