// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/health.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::health {
namespace {

using model::GpuEvent;
using model::GpuEventKind;
using model::RecoveryAction;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kHardwareHot = 0x40;

model::Inventory machine(int gpus, int instances_of_first = 0) {
  model::Inventory inventory;
  for (int i = 0; i < gpus; ++i) {
    auto& gpu = inventory.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid.text = "GPU-" + std::to_string(i);
  }
  for (int i = 0; i < instances_of_first; ++i) {
    auto& mig = inventory.gpus[0].mig.instances.emplace_back();
    mig.uuid.text = "MIG-" + std::to_string(i);
    mig.gpu_instance = 7 + i;
  }
  return inventory;
}

model::Readings readings(int gpus, RecoveryAction action = RecoveryAction::None) {
  model::Readings all;
  for (int i = 0; i < gpus; ++i) {
    auto& gpu = all.gpus.emplace_back();
    gpu.uuid.text = "GPU-" + std::to_string(i);
    gpu.recovery_action = RecoveryAction::None;
    gpu.energy_millijoules = 1000;
    gpu.ecc_uncorrected_volatile = 0;
  }
  all.gpus[0].recovery_action = action;
  return all;
}

model::Readings old_driver(int gpus) {
  auto all = readings(gpus);
  for (auto& gpu : all.gpus) gpu.recovery_action.reset();
  return all;
}

GpuEvent xid(unsigned number, const char* gpu = "GPU-0") {
  return {.kind = GpuEventKind::Xid, .gpu = {gpu}, .data = number};
}

std::vector<bool> usable(const HealthMonitor& monitor) {
  std::vector<bool> list;
  for (const auto& one : monitor.health()) list.push_back(one.usable);
  return list;
}

class TwoGpus : public ::testing::Test {
 protected:
  TwoGpus() { monitor_.set_inventory(machine(2), 100); }
  HealthMonitor monitor_;
};

TEST_F(TwoGpus, AreUsableUntilSomethingHappens) {
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
  EXPECT_THAT(monitor_.take_changes(), IsEmpty());
  EXPECT_FALSE(monitor_.wants_readings());
}

TEST_F(TwoGpus, ACriticalXidTakesItsGpuAwayWithCauseAndRemedy) {
  monitor_.on_event(xid(48), 101);
  ASSERT_THAT(usable(monitor_), ElementsAre(false, true));
  const auto sick = monitor_.health()[0];
  EXPECT_EQ(sick.cause, "Xid 48: uncorrectable ECC error");
  EXPECT_EQ(sick.remedy, "nvidia-smi --gpu-reset -i GPU-0");
  EXPECT_EQ(sick.xid, 48);
  EXPECT_EQ(sick.since_unix_seconds, 101);
  EXPECT_THAT(monitor_.take_changes(), SizeIs(1));
  EXPECT_TRUE(monitor_.wants_readings());
}

TEST_F(TwoGpus, AreJudgedByNewOptionsFromTheNextEventOn) {
  monitor_.on_event(xid(31), 101);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
  monitor_.set_options({.xids = {.critical = {31}}});
  monitor_.on_event(xid(31), 102);
  EXPECT_THAT(usable(monitor_), ElementsAre(false, true));
}

TEST_F(TwoGpus, AProgramsFaultTakesNothingAwayButIsReported) {
  for (const auto number : {13U, 31U, 43U, 45U, 68U, 94U, 109U, 63U}) {
    monitor_.on_event(xid(number), 101);
  }
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
  const auto notices = monitor_.take_notices();
  ASSERT_THAT(notices, SizeIs(8));
  EXPECT_EQ(notices[0].xid, 13U);
  EXPECT_FALSE(notices[0].critical);
  EXPECT_THAT(monitor_.take_notices(), IsEmpty());
}

TEST_F(TwoGpus, TheDriversRecoveryActionDecidesAgainstTheTable) {
  monitor_.on_event(xid(94), 101);  // harmless by the table
  monitor_.on_readings(readings(2, RecoveryAction::GpuReset), 102);
  ASSERT_THAT(usable(monitor_), ElementsAre(false, true));
  EXPECT_THAT(monitor_.health()[0].cause, HasSubstr("wants this GPU to be reset"));

  monitor_.on_event(xid(48, "GPU-1"), 103);  // critical by the table, the driver needs nothing
  monitor_.on_readings(readings(2, RecoveryAction::GpuReset), 104);
  monitor_.on_readings(readings(2, RecoveryAction::GpuReset), 114);
  EXPECT_THAT(usable(monitor_), ElementsAre(false, true));
}

TEST_F(TwoGpus, EveryActionHasItsRemedy) {
  const std::vector<std::pair<RecoveryAction, const char*>> cases{
      {RecoveryAction::GpuReset, "nvidia-smi --gpu-reset -i GPU-0"},
      {RecoveryAction::NodeReboot, "systemctl reboot"},
      {RecoveryAction::DrainP2p, "nvidia-smi --gpu-reset -i GPU-0"},
      {RecoveryAction::DrainAndReset, "nvidia-smi --gpu-reset -i GPU-0"},
      {RecoveryAction::RecoverImexDomain, "systemctl restart nvidia-imex"}};
  for (const auto& [action, remedy] : cases) {
    HealthMonitor monitor;
    monitor.set_inventory(machine(1), 1);
    monitor.on_readings(readings(1, action), 2);
    EXPECT_FALSE(monitor.health()[0].usable);
    EXPECT_EQ(monitor.health()[0].remedy, remedy);
  }
}

TEST_F(TwoGpus, ComesBackAfterGoodReadingsForLongEnough) {
  monitor_.on_event(xid(48), 101);
  monitor_.on_readings(readings(2, RecoveryAction::DrainAndReset), 102);
  monitor_.on_readings(readings(2), 110);
  EXPECT_FALSE(monitor_.health()[0].usable) << "one good reading is not enough";
  monitor_.on_readings(readings(2), 115);
  EXPECT_FALSE(monitor_.health()[0].usable) << "nor are five seconds";
  monitor_.on_readings(readings(2), 120);
  EXPECT_TRUE(monitor_.health()[0].usable);
  EXPECT_EQ(monitor_.health()[0].since_unix_seconds, 120);
  EXPECT_EQ(monitor_.health()[0].cause, "");
}

TEST_F(TwoGpus, ABadReadingRestartsTheWait) {
  monitor_.on_readings(readings(2, RecoveryAction::GpuReset), 100);
  monitor_.on_readings(readings(2), 105);
  monitor_.on_readings(readings(2, RecoveryAction::GpuReset), 110);
  monitor_.on_readings(readings(2), 115);
  monitor_.on_readings(readings(2), 120);
  EXPECT_FALSE(monitor_.health()[0].usable);
  monitor_.on_readings(readings(2), 125);
  EXPECT_TRUE(monitor_.health()[0].usable);
}

TEST_F(TwoGpus, ARelapseWaitsTwiceAsLong) {
  const auto sick_and_well = [&](std::int64_t at) {
    monitor_.on_readings(readings(2, RecoveryAction::GpuReset), at);
    monitor_.on_readings(readings(2), at + 1);
    monitor_.on_readings(readings(2), at + 12);
  };
  sick_and_well(100);
  ASSERT_TRUE(monitor_.health()[0].usable);
  sick_and_well(200);
  EXPECT_FALSE(monitor_.health()[0].usable);
  monitor_.on_readings(readings(2), 222);
  EXPECT_TRUE(monitor_.health()[0].usable);
  sick_and_well(10'000);
  EXPECT_TRUE(monitor_.health()[0].usable) << "an hour later it is forgiven";
}

TEST_F(TwoGpus, WithoutARecoveryActionOnlyAResetShowsTheEnd) {
  monitor_.on_readings(old_driver(2), 100);
  monitor_.on_event(xid(62), 101);
  for (int s = 110; s < 200; s += 10) monitor_.on_readings(old_driver(2), s);
  EXPECT_FALSE(monitor_.health()[0].usable);
  auto after = old_driver(2);
  after.gpus[0].energy_millijoules = 5;  // it counts from the start again
  monitor_.on_readings(after, 300);
  EXPECT_TRUE(monitor_.health()[0].usable);
}

TEST_F(TwoGpus, WithoutARecoveryActionUncorrectedErrorsCount) {
  auto bad = old_driver(2);
  bad.gpus[1].ecc_uncorrected_volatile = 3;
  monitor_.on_readings(bad, 100);
  ASSERT_THAT(usable(monitor_), ElementsAre(true, false));
  EXPECT_THAT(monitor_.health()[1].cause, HasSubstr("3 uncorrectable memory errors"));
  bad.gpus[0].recovery_action = bad.gpus[1].recovery_action = RecoveryAction::None;
  monitor_.on_readings(bad, 110);
  monitor_.on_readings(bad, 120);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true)) << "a driver that can tell is believed";
}

TEST_F(TwoGpus, ALostGpuAndItsReturn) {
  auto lost = readings(2);
  lost.gpus[1].lost = "NVML_ERROR_GPU_IS_LOST";
  monitor_.on_readings(lost, 100);
  ASSERT_THAT(usable(monitor_), ElementsAre(true, false));
  EXPECT_THAT(monitor_.health()[1].cause, HasSubstr("does not answer"));
  EXPECT_EQ(monitor_.health()[1].remedy, "systemctl reboot");
  monitor_.on_readings(readings(2), 110);
  monitor_.on_readings(readings(2), 120);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
}

TEST_F(TwoGpus, AGpuThatReadingsLackIsLost) {
  monitor_.on_readings(readings(1), 100);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, false));
}

TEST_F(TwoGpus, NoSpareRowIsForGood) {
  auto bad = readings(2);
  bad.gpus[0].remap_failure = 1;
  monitor_.on_readings(bad, 100);
  EXPECT_THAT(monitor_.health()[0].cause, HasSubstr("no spare memory row"));
  EXPECT_THAT(monitor_.health()[0].remedy, HasSubstr("ROW_REMAPPER"));
}

TEST_F(TwoGpus, HeatCountsWhenItLasts) {
  auto hot = readings(2);
  hot.gpus[0].clock_reasons = kHardwareHot;
  hot.gpus[0].temperature_celsius = 96;
  monitor_.on_readings(hot, 100);
  EXPECT_TRUE(monitor_.health()[0].usable);
  EXPECT_TRUE(monitor_.wants_readings());
  monitor_.on_readings(hot, 160);
  EXPECT_FALSE(monitor_.health()[0].usable);
  EXPECT_THAT(monitor_.health()[0].cause, HasSubstr("(96 C)"));
  monitor_.on_readings(readings(2), 165);
  monitor_.on_readings(readings(2), 176);
  EXPECT_TRUE(monitor_.health()[0].usable);
}

TEST_F(TwoGpus, AShortSilenceChangesNothing) {
  monitor_.on_nvml_unavailable("it hangs", 100);
  monitor_.on_time(120);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
  monitor_.on_readings(readings(2), 125);
  monitor_.on_time(200);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
}

TEST_F(TwoGpus, ALongSilenceTakesEverythingUntilItEnds) {
  monitor_.on_nvml_unavailable("it hangs", 100);
  monitor_.on_time(130);
  ASSERT_THAT(usable(monitor_), ElementsAre(false, false));
  EXPECT_THAT(monitor_.health()[0].cause, AllOf(HasSubstr("NVML"), HasSubstr("it hangs")));
  monitor_.on_readings(readings(2), 140);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true)) << "at once: nothing was wrong with them";
}

TEST_F(TwoGpus, WithoutADriverNothingIsUsableAndAReloadCures) {
  monitor_.on_event(xid(62), 99);
  monitor_.on_driver_gone("the module is not loaded", 100);
  ASSERT_THAT(usable(monitor_), ElementsAre(false, false));
  EXPECT_EQ(monitor_.health()[1].cause, "the module is not loaded");
  monitor_.on_readings(readings(2), 110);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
}

TEST_F(TwoGpus, AnEventWithoutAGpuTakesAll) {
  monitor_.on_event(xid(119, ""), 100);
  EXPECT_THAT(usable(monitor_), ElementsAre(false, false));
}

TEST_F(TwoGpus, AGpuThatIsGoneIsForgotten) {
  monitor_.on_event(xid(79, "GPU-1"), 100);
  monitor_.set_inventory(machine(1), 101);
  EXPECT_THAT(monitor_.health(), SizeIs(1));
  monitor_.set_inventory(machine(2), 102);
  EXPECT_THAT(usable(monitor_), ElementsAre(true, true));
}

TEST_F(TwoGpus, TheWorstTroubleIsTheCause) {
  monitor_.on_event(xid(62), 100);
  auto lost = readings(2);
  lost.gpus[0].lost = "gone";
  monitor_.on_readings(lost, 101);
  EXPECT_THAT(monitor_.health()[0].cause, HasSubstr("does not answer"));
  EXPECT_EQ(monitor_.health()[0].since_unix_seconds, 100) << "it has been unusable since the Xid";
}

TEST(OnlyXids, NothingElseTakesAGpuAwayAndOnlyThoseThatWereNamed) {
  HealthOptions options{.only_xids = true};
  options.xids.none_count = true;
  options.xids.critical = {48};
  HealthMonitor monitor(options);
  monitor.set_inventory(machine(2), 1);
  monitor.on_readings(readings(2, RecoveryAction::GpuReset), 2);
  monitor.on_event(xid(79), 3);
  EXPECT_THAT(usable(monitor), ElementsAre(true, true));
  monitor.on_event(xid(48), 4);
  EXPECT_THAT(usable(monitor), ElementsAre(false, true));
}

TEST(OnlyXids, AGpuThatDoesNotAnswerIsGone) {
  HealthMonitor monitor(HealthOptions{.only_xids = true});
  monitor.set_inventory(machine(1), 1);
  auto lost = readings(1);
  lost.gpus[0].lost = "GPU is lost";
  monitor.on_readings(lost, 2);
  EXPECT_THAT(usable(monitor), ElementsAre(false));
}

TEST(MigHealth, TheCardTakesEveryInstanceWithIt) {
  HealthMonitor monitor;
  monitor.set_inventory(machine(2, 3), 1);
  monitor.on_event(xid(79), 2);
  EXPECT_THAT(usable(monitor), ElementsAre(false, false, false, false, true));
  EXPECT_EQ(monitor.health()[2].xid, 79);
}

TEST(MigHealth, AnInstancesOwnTroubleStaysWithIt) {
  HealthMonitor monitor({.xids = {.critical = {94}}});
  monitor.set_inventory(machine(2, 3), 1);
  auto event = xid(94);
  event.gpu_instance = 8;
  event.compute_instance = 0;
  monitor.on_event(event, 2);
  EXPECT_THAT(usable(monitor), ElementsAre(true, true, false, true, true));
  EXPECT_THAT(monitor.health()[2].cause, HasSubstr("in GPU instance 8"));
  EXPECT_EQ(monitor.take_notices().at(0).mig.text, "MIG-1");
  monitor.on_readings(readings(2), 10);
  monitor.on_readings(readings(2), 20);
  EXPECT_TRUE(monitor.health()[2].usable);
}

TEST(MigHealth, AViewWithoutNvmlDoesNotMakeInstancesVanish) {
  HealthMonitor monitor;
  monitor.set_inventory(machine(2, 3), 1);
  auto kernel_only = machine(2);
  kernel_only.driver.nvml_error = "it hangs";
  monitor.set_inventory(kernel_only, 2);
  EXPECT_THAT(monitor.health(), SizeIs(5));
  monitor.set_inventory(machine(2), 3);
  EXPECT_THAT(monitor.health(), SizeIs(2));
}

TEST(DriverHealth, CardsThatNvmlNeverDescribedAreUnhealthyAtOnce) {
  HealthMonitor monitor;
  auto kernel_only = machine(2);
  kernel_only.driver.nvml_error = "nvmlInit_v2: version mismatch";
  monitor.set_inventory(kernel_only, 2);
  EXPECT_THAT(usable(monitor), ElementsAre(false, false));
  EXPECT_THAT(monitor.health()[0].cause, HasSubstr("version mismatch"));
  monitor.set_inventory(machine(2), 3);
  EXPECT_THAT(usable(monitor), ElementsAre(true, true));
}

TEST(ComputeHealth, AGpuThatCannotComputeIsUnhealthyUntilItCan) {
  HealthMonitor monitor;
  const auto two = machine(2, 1);
  monitor.set_inventory(two, 1);
  const ComputeObstacle fabric{.kind = ComputeObstacleKind::FabricNotReady,
                               .gpus = {0},
                               .cause = "the fabric is not ready",
                               .remedy = "start it"};
  monitor.set_obstacles(two, {fabric}, 2);
  EXPECT_THAT(usable(monitor), ElementsAre(false, false, true)) << "an instance has its card's";
  EXPECT_EQ(monitor.health()[0].cause, fabric.cause);
  EXPECT_EQ(monitor.health()[0].remedy, fabric.remedy);
  EXPECT_TRUE(monitor.wants_obstacles());
  monitor.on_readings(readings(2), 3);
  monitor.set_obstacles(two, {fabric}, 3);
  EXPECT_FALSE(monitor.health()[0].usable) << "good readings do not make it compute";
  EXPECT_EQ(monitor.health()[0].since_unix_seconds, 2);
  monitor.set_obstacles(two, {}, 4);
  EXPECT_THAT(usable(monitor), ElementsAre(true, true, true));
  EXPECT_FALSE(monitor.wants_obstacles());
}

TEST(ComputeHealth, OfGkesPluginIsOnlyAboutXids) {
  HealthMonitor monitor({.only_xids = true});
  const auto one = machine(1);
  monitor.set_inventory(one, 1);
  monitor.set_obstacles(one, {{.kind = ComputeObstacleKind::UvmNotLoaded, .gpus = {0}}}, 2);
  EXPECT_TRUE(monitor.health()[0].usable);
}

TEST(HealthOf, ReplicasAndInstancesFollowTheirCard) {
  HealthMonitor monitor;
  monitor.set_inventory(machine(2, 1), 1);
  monitor.on_event(xid(79), 2);
  const auto health = monitor.health();
  EXPECT_FALSE(health_of(health, {.id = "GPU-0::3", .gpu = {"GPU-0"}, .replica = 3}).usable);
  EXPECT_FALSE(health_of(health, {.id = "MIG-0", .gpu = {"GPU-0"}, .mig = {"MIG-0"}}).usable);
  EXPECT_TRUE(health_of(health, {.id = "GPU-1::0", .gpu = {"GPU-1"}, .replica = 0}).usable);
  EXPECT_TRUE(health_of(health, {.id = "GPU-9", .gpu = {"GPU-9"}}).usable);
}

TEST(SavedHealth, SurvivesARestart) {
  HealthMonitor before;
  before.set_inventory(machine(2), 1);
  before.on_event(xid(62), 50);
  HealthMonitor after;
  ASSERT_TRUE(after.restore(before.saved("boot-1"), "boot-1").ok());
  after.set_inventory(machine(2), 60);
  EXPECT_THAT(usable(after), ElementsAre(false, true));
  EXPECT_EQ(after.health()[0].cause, before.health()[0].cause);
  EXPECT_EQ(after.health()[0].xid, 62);
  EXPECT_EQ(after.saved("boot-1"), before.saved("boot-1"));
}

TEST(SavedHealth, ARebootClearsWhatARebootClears) {
  HealthMonitor before;
  before.set_inventory(machine(2), 1);
  before.on_event(xid(79), 50);
  before.on_event(xid(64, "GPU-1"), 50);
  HealthMonitor after;
  ASSERT_TRUE(after.restore(before.saved("boot-1"), "boot-2").ok());
  after.set_inventory(machine(2), 60);
  EXPECT_THAT(usable(after), ElementsAre(true, false)) << "a broken card stays broken";
}

TEST(SavedHealth, IsKeptForAGpuThatIsNotThereYet) {
  HealthMonitor before;
  before.set_inventory(machine(2), 1);
  before.on_event(xid(62, "GPU-1"), 50);
  HealthMonitor after;
  ASSERT_TRUE(after.restore(before.saved("b"), "b").ok());
  after.set_inventory(machine(1), 60);
  EXPECT_EQ(after.saved("b"), before.saved("b"));
}

TEST(SavedHealth, NonsenseIsAnErrorAndChangesNothing) {
  HealthMonitor before;
  before.set_inventory(machine(1), 1);
  before.on_event(xid(62), 50);
  const auto good = before.saved("b");
  HealthMonitor monitor;
  ASSERT_TRUE(monitor.restore(good, "b").ok());
  for (
      const auto* text :
      {"", "{}", "[]", R"({"schema": 2, "boot_id": "b", "troubles": []})",
       R"({"schema": 1, "boot_id": "b"})",
       R"({"schema": 1, "boot_id": "b", "troubles": [{"gpu": "x"}]})",
       R"({"schema": 1, "boot_id": "b", "troubles": [{"gpu": "x", "mig": "", "kind": "event", "needs": "pray", "since": 1}]})"}) {
    EXPECT_EQ(monitor.restore(text, "b").error().code(), Errc::Corrupt) << text;
  }
  monitor.set_inventory(machine(1), 60);
  EXPECT_FALSE(monitor.health()[0].usable);
}

}  // namespace
}  // namespace gantry::health
