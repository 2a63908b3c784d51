// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/compute.hpp"

#include "gpu/probe/snapshot.hpp"
#include "support/machine.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::health {
namespace {

using Kind = ComputeObstacleKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Kind> kinds(const std::vector<ComputeObstacle>& obstacles) {
  std::vector<Kind> found;
  for (const auto& obstacle : obstacles) found.push_back(obstacle.kind);
  return found;
}

// A machine that can compute.
model::Inventory two_gpus() {
  model::Inventory inventory;
  inventory.driver.version = inventory.driver.library_version = "580.95.05";
  for (int i = 0; i < 2; ++i) {
    inventory.gpus.push_back({.index = i,
                              .uuid = {fmt::format("GPU-{}", i)},
                              .minor = static_cast<std::uint32_t>(i),
                              .health = {model::HealthState::Ok, {}}});
  }
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm"}) {
    inventory.nodes.push_back({.path = path});
  }
  return inventory;
}

TEST(Compute, NothingKeepsAHealthyMachineFromIt) {
  EXPECT_THAT(find_compute_obstacles(two_gpus(), {}), IsEmpty());
  EXPECT_THAT(find_compute_obstacles({}, {}), IsEmpty()) << "no GPU, no obstacle";
}

TEST(Compute, OneMissingNodeConcernsItsGpuOnly) {
  auto machine = two_gpus();
  std::erase_if(machine.nodes, [](const auto& node) { return node.path == "/dev/nvidia1"; });
  const auto found = find_compute_obstacles(machine, {});
  ASSERT_THAT(kinds(found), ElementsAre(Kind::NodesMissing));
  EXPECT_EQ(obstacle_of(found, 0), nullptr);
  ASSERT_NE(obstacle_of(found, 1), nullptr);
  EXPECT_EQ(found.front().cause, "/dev/nvidia1 is missing");
  EXPECT_EQ(found.front().remedy, "sudo nvidia-modprobe -c 1");
}

TEST(Compute, WithoutTheControlNodeNoGpuCan) {
  auto machine = two_gpus();
  std::erase_if(machine.nodes, [](const auto& node) { return node.path == "/dev/nvidiactl"; });
  const auto found = find_compute_obstacles(machine, {});
  ASSERT_THAT(kinds(found), ElementsAre(Kind::NodesMissing));
  EXPECT_THAT(found.front().gpus, ElementsAre(0, 1));
}

TEST(Compute, AMissingUvmNodeIsNotAMissingModule) {
  auto machine = two_gpus();
  machine.nodes.pop_back();
  EXPECT_THAT(kinds(find_compute_obstacles(machine, {})), ElementsAre(Kind::UvmNodeMissing));
  EXPECT_THAT(kinds(find_compute_obstacles(machine, {.uvm_loaded = false})),
              ElementsAre(Kind::UvmNotLoaded));
}

TEST(Compute, ALostOrProhibitedGpuDoesNotConcernTheOthers) {
  auto machine = two_gpus();
  machine.gpus[0].health = {model::HealthState::Lost, {"it fell off the bus"}};
  machine.gpus[1].compute_mode = "Prohibited";
  const auto found = find_compute_obstacles(machine, {});
  ASSERT_THAT(kinds(found), ElementsAre(Kind::GpuLost, Kind::Prohibited));
  EXPECT_EQ(obstacle_of(found, 0)->cause, "the GPU does not answer: it fell off the bus");
  EXPECT_EQ(obstacle_of(found, 1)->remedy, "sudo nvidia-smi -i 1 -c 0");
}

TEST(Compute, AFabricThatIsNotStartedConcernsGpusWhoseDriverDoesNotReportIt) {
  auto machine = two_gpus();
  machine.functions.push_back({.vendor = 0x10de, .class_code = 0x068000});
  EXPECT_THAT(find_compute_obstacles(machine, {}), IsEmpty()) << "unknown";
  EXPECT_THAT(find_compute_obstacles(machine, {.fabric_manager_runs = true}), IsEmpty());
  EXPECT_THAT(kinds(find_compute_obstacles(machine, {.fabric_manager_runs = false})),
              ElementsAre(Kind::FabricNotReady));
}

TEST(Compute, SilenceOfNvmlIsNamedOnlyIfNothingExplainsIt) {
  auto machine = two_gpus();
  machine.driver.nvml_error = "timed out";
  const auto found = find_compute_obstacles(machine, {});
  ASSERT_THAT(kinds(found), ElementsAre(Kind::NvmlSilent));
  EXPECT_EQ(found.front().cause, "NVML does not answer: timed out");
  machine.driver.version = "";
  EXPECT_THAT(kinds(find_compute_obstacles(machine, {})), ElementsAre(Kind::DriverNotLoaded));
}

class ComputeMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "simulated libraries are not built";
  }
  std::vector<ComputeObstacle> look(const char* name) {
    const test::Machine machine(name);
    const auto host = machine.host();
    const auto inventory = probe::snapshot(host);
    EXPECT_TRUE(inventory.ok());
    gpus_ = inventory->gpus.size();
    return find_compute_obstacles(*inventory, read_compute_facts(host, *inventory));
  }
  std::size_t gpus_ = 0;
};

TEST_F(ComputeMachine, WithoutAFaultCompute) {
  for (const char* name : {"h200", "h200x8", "a100x8", "t4x4", "k80", "mixed", "numa"}) {
    EXPECT_THAT(look(name), IsEmpty()) << name;
  }
}

TEST_F(ComputeMachine, NoUvm) {
  const auto found = look("no-uvm");
  ASSERT_THAT(kinds(found), ElementsAre(Kind::UvmNotLoaded));
  EXPECT_THAT(found.front().gpus, SizeIs(gpus_));
  EXPECT_THAT(found.front().cause, HasSubstr("nvidia_uvm is not loaded"));
  EXPECT_THAT(found.front().remedy, HasSubstr("modprobe nvidia-uvm"));
}

TEST_F(ComputeMachine, FabricDown) {
  const auto found = look("fabric-down");
  ASSERT_THAT(kinds(found), ElementsAre(Kind::FabricNotReady));
  EXPECT_THAT(found.front().gpus, SizeIs(gpus_));
  EXPECT_THAT(found.front().remedy, HasSubstr("nvidia-fabricmanager"));
}

TEST_F(ComputeMachine, Mismatch) {
  const auto found = look("mismatch");
  ASSERT_THAT(kinds(found), ElementsAre(Kind::VersionMismatch));
  EXPECT_EQ(found.front().cause, "the module is 580.159.04, the libraries are 580.95.05");
}

TEST_F(ComputeMachine, NoNodes) {
  const auto found = look("no-nodes");
  ASSERT_THAT(kinds(found), ElementsAre(Kind::NodesMissing, Kind::UvmNodeMissing));
  EXPECT_EQ(found.front().cause, "/dev/nvidiactl, /dev/nvidia0 are missing");
  EXPECT_EQ(found.front().remedy, "sudo nvidia-modprobe -c 0");
}

TEST_F(ComputeMachine, FallenOff) {
  const auto found = look("fallen-off");
  ASSERT_THAT(kinds(found), ElementsAre(Kind::GpuLost));
  EXPECT_THAT(found.front().gpus, ElementsAre(3));
}

}  // namespace
}  // namespace gantry::health
