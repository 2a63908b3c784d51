// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/snapshot.hpp"

#include "gpu/model/inventory_json.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::probe {
namespace {

using test::Tree;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

model::Inventory with_gpu() {
  model::Inventory inventory;
  inventory.boot_id = "boot";
  inventory.driver.version = "580.1";
  inventory.gpus.emplace_back();
  inventory.gpus[0].uuid.text = "GPU-a";
  inventory.gpus[0].mig.instances.emplace_back();
  inventory.links = {{model::Link{.pcie = model::PciePath::Self}}};
  return inventory;
}

TEST(Snapshot, ReadsTheRecordedH200WithoutNvml) {
  const auto host = sys::Host::at(test::source_dir() + "/tests/golden/h200");
  const auto inventory = snapshot(*host, {.nvml = NvmlUse::Skip});
  ASSERT_TRUE(inventory.ok()) << inventory.error().text();
  ASSERT_THAT(inventory->gpus, SizeIs(1));
  EXPECT_EQ(inventory->gpus[0].uuid.text, "GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(inventory->driver.version, "580.159.04");
  EXPECT_EQ(inventory->driver.nvml_error, "NVML was not queried");
  EXPECT_EQ(inventory->boot_id, "11111111-2222-3333-4444-666666666666");
  EXPECT_THAT(inventory->functions, SizeIs(1));
  ASSERT_THAT(inventory->nodes, SizeIs(6));
  EXPECT_EQ(inventory->nodes[0].path, "/dev/nvidiactl");
  EXPECT_THAT(inventory->differences, IsEmpty());
  EXPECT_EQ(inventory->links,
            (std::vector<std::vector<model::Link>>{{{.pcie = model::PciePath::Self}}}));
}

TEST(Snapshot, SaysThatNvmlIsNotThere) {
  const auto host = sys::Host::at(test::source_dir() + "/tests/golden/h200");
  EXPECT_THAT(snapshot(*host)->driver.nvml_error, HasSubstr("libnvidia-ml.so.1 was not found"));
}

TEST(Snapshot, RefusesADirectoryThatIsNoMachine) {
  const auto inventory = snapshot(Tree().host());
  ASSERT_FALSE(inventory.ok());
  EXPECT_EQ(inventory.error().code(), Errc::NotFound);
  EXPECT_THAT(inventory.error().text(), HasSubstr("neither /proc nor /sys"));
}

TEST(Snapshot, OfAMachineWithoutGpusIsEmptyAndSaysWhy) {
  Tree tree;
  tree.directory("proc").directory("sys/bus/pci/devices");
  const auto inventory = snapshot(tree.host());
  ASSERT_TRUE(inventory.ok());
  EXPECT_THAT(inventory->gpus, IsEmpty());
  EXPECT_THAT(inventory->notes, ::testing::Contains(HasSubstr("not loaded")));
}

TEST(Snapshot, SurvivesALibraryThatIsNone) {
  Tree tree;
  tree.directory("proc").directory("sys/bus/pci/devices");
  tree.file("usr/lib64/libnvidia-ml.so.580.1", "not ELF")
      .link("usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.1");
  const auto inventory = snapshot(tree.host());
  ASSERT_TRUE(inventory.ok());
  EXPECT_NE(inventory->driver.nvml_error, "");
}

TEST(Generation, ChangesWithBootDriverGpusAndMigOnly) {
  const auto base = generation_of(with_gpu());
  EXPECT_THAT(base, SizeIs(16));
  auto other = with_gpu();
  other.gpus[0].telemetry.temperature_celsius = 90;
  other.gpus[0].health.state = model::HealthState::Lost;
  other.notes.emplace_back("a note");
  EXPECT_EQ(generation_of(other), base);
  other = with_gpu();
  other.boot_id = "next";
  EXPECT_NE(generation_of(other), base);
  other = with_gpu();
  other.driver.version = "580.2";
  EXPECT_NE(generation_of(other), base);
  other = with_gpu();
  other.gpus[0].uuid.text = "GPU-b";
  EXPECT_NE(generation_of(other), base);
  other = with_gpu();
  other.gpus[0].mig.instances[0].gpu_instance = 5;
  EXPECT_NE(generation_of(other), base);
  other = with_gpu();
  other.gpus[0].mig.instances.clear();
  EXPECT_NE(generation_of(other), base);
}

TEST(WriteInventory, WritesWhatCanBeReadBack) {
  const Tree tree;
  const auto written = write_inventory(tree.host(), with_gpu());
  ASSERT_TRUE(written.ok()) << written.error().text();
  EXPECT_EQ(*written, WriteResult::Replaced);
  const auto text = tree.host().read(kInventoryPath);
  EXPECT_EQ(*model::inventory_from_json(*text), with_gpu());
}

TEST(WriteInventory, KeepsAGoodOneFromAnEmptyOne) {
  const Tree tree;
  ASSERT_TRUE(write_inventory(tree.host(), with_gpu()).ok());
  EXPECT_EQ(*write_inventory(tree.host(), {}), WriteResult::Kept);
  EXPECT_EQ(*tree.host().read(kInventoryPath), model::to_json(with_gpu()));
}

TEST(WriteInventory, ReplacesItWhenEveryGpuDemonstrablyBelongsToAnother) {
  const Tree tree;
  ASSERT_TRUE(write_inventory(tree.host(), with_gpu()).ok());
  model::Inventory passed;
  passed.functions.push_back({.address = {.bus = 1}, .class_code = 0x030200, .driver = "vfio-pci"});
  EXPECT_EQ(*write_inventory(tree.host(), passed), WriteResult::Replaced);
}

TEST(WriteInventory, ReplacesADamagedOne) {
  Tree tree;
  tree.file("run/gantry/inventory.json", "{");
  EXPECT_EQ(*write_inventory(tree.host(), {}), WriteResult::Replaced);
}

TEST(WriteInventory, LeavesNothingBehindWhenItCannotWrite) {
  Tree tree;
  tree.directory("run/gantry/inventory.json/in-the-way");
  EXPECT_FALSE(write_inventory(tree.host(), with_gpu()).ok());
  const auto names = tree.host().list("/run/gantry");
  EXPECT_THAT(*names, ::testing::ElementsAre("inventory.json"));
}

}  // namespace
}  // namespace gantry::probe
