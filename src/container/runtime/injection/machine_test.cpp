// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/machine.hpp"

#include "container/runtime/injection/ready_machine_for_test.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class MachineAtStart : public ::testing::Test {
 protected:
  Result<Machine> open(const Status& answer = Error(Errc::Internal, "refused")) {
    return open_machine(ready_.host(), [this, answer] {
      ++refreshes_;
      if (on_refresh_) on_refresh_();
      return answer;
    });
  }

  ReadyMachine ready_;
  int refreshes_ = 0;
  std::function<void()> on_refresh_;
};

TEST_F(MachineAtStart, WhatWasWrittenDownIsUsedWithoutAskingAnybody) {
  const auto machine = open();
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  EXPECT_EQ(machine->inventory, ready_.inventory());
  EXPECT_EQ(refreshes_, 0);
  EXPECT_THAT(machine->notes, SizeIs(0));
}

TEST_F(MachineAtStart, AnotherBootDriverOrMigLayoutIsStale) {
  auto inventory = ready_.inventory();
  EXPECT_EQ(stale_reason(ready_.host(), inventory), "");
  inventory.boot_id = "boot-0";
  EXPECT_THAT(stale_reason(ready_.host(), inventory), HasSubstr("another boot"));
  inventory = ready_.inventory();
  inventory.driver.version = "580.159.0";
  EXPECT_THAT(stale_reason(ready_.host(), inventory), HasSubstr("580.159.0,"));
  inventory = ready_.inventory();
  inventory.gpus[1].mig.instances.clear();
  EXPECT_THAT(stale_reason(ready_.host(), inventory), HasSubstr("MIG instances of GPU 1"));
  ready_.tree().directory("proc/driver/nvidia/capabilities/gpu0/mig/gi1");
  EXPECT_THAT(stale_reason(ready_.host(), ready_.inventory()), HasSubstr("of GPU 0"));
}

TEST_F(MachineAtStart, StaleIsRefreshedOnce) {
  ready_.tree().file("proc/sys/kernel/random/boot_id", "boot-2");
  on_refresh_ = [this] {
    ready_.inventory().boot_id = "boot-2";
    ready_.write_inventory();
  };
  const auto machine = open(Status());
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  EXPECT_EQ(machine->inventory.boot_id, "boot-2");
  EXPECT_EQ(refreshes_, 1);
  ASSERT_THAT(machine->notes, SizeIs(1));
  EXPECT_THAT(machine->notes[0], HasSubstr("rebuilt: the inventory is from another boot"));
}

TEST_F(MachineAtStart, WithoutInventoryWholeGpusComeFromProcfs) {
  ready_.tree().remove("run/gantry/inventory.json");
  const auto machine = open();
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  EXPECT_TRUE(machine->from_procfs);
  ASSERT_THAT(machine->inventory.gpus, SizeIs(2));
  EXPECT_EQ(machine->inventory.gpus[0].uuid.text, ReadyMachine::uuid(0));
  EXPECT_EQ(machine->inventory.gpus[1].mig.current, model::MigMode::Enabled);
  EXPECT_THAT(machine->inventory.nodes, SizeIs(5));
  ASSERT_THAT(machine->notes, SizeIs(1));
  EXPECT_THAT(machine->notes[0], HasSubstr("gantry cdi refresh"));
}

TEST_F(MachineAtStart, ADriverDirectoryOfAnotherDriverIsNotUsed) {
  ready_.tree().file("proc/driver/nvidia/version", "NVRM version: Kernel Module  590.1.2  x\n");
  const auto machine = open();
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("gantry cdi refresh"));
  EXPECT_THAT(machine.error().text(), HasSubstr("refused"));
}

TEST_F(MachineAtStart, WithoutADriverNvmlIsNotAsked) {
  ready_.tree().remove("proc/driver/nvidia/version");
  const auto machine = open();
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().text(), HasSubstr("driver is not loaded"));
  EXPECT_EQ(machine.error().remedy(), "run `gantry doctor`");
  EXPECT_EQ(refreshes_, 0);
}

TEST_F(MachineAtStart, AnInventoryThatOthersMayChangeIsReplaced) {
  const auto file = ready_.tree().path("run/gantry/inventory.json");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  on_refresh_ = [&] { ::chmod(file.c_str(), 0644); };
  const auto machine = open(Status());
  ASSERT_TRUE(machine.ok()) << machine.error().text();
  EXPECT_EQ(refreshes_, 1);
  ASSERT_THAT(machine->notes, SizeIs(1));
  EXPECT_THAT(machine->notes[0], HasSubstr("can be changed by users other than its owner"));
}

TEST_F(MachineAtStart, AnInventoryThatOthersMayChangeIsNotWorkedAround) {
  ASSERT_EQ(::chmod(ready_.tree().path("run/gantry").c_str(), 0777), 0);
  const auto machine = open();
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code(), Errc::Denied);
  EXPECT_THAT(machine.error().remedy(), HasSubstr("chmod go-w"));
  EXPECT_THAT(machine.error().remedy(), HasSubstr("gantry cdi refresh"));
}

TEST_F(MachineAtStart, ADamagedInventoryIsAsGoodAsNone) {
  ready_.tree().file("run/gantry/inventory.json", "{");
  const auto machine = open();
  ASSERT_TRUE(machine.ok());
  EXPECT_TRUE(machine->from_procfs);
  EXPECT_EQ(refreshes_, 1);
}

}  // namespace
}  // namespace gantry::runtime
