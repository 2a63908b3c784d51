// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/bind.hpp"

#include "base/core/text.hpp"
#include "vm/vfio/host_for_test.hpp"
#include "vm/vfio/journal.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::vfio {
namespace {

using test_host::at;
using test_host::Fault;
using test_host::kGpu;
using test_host::Killed;
using test_host::kSound;
using test_host::kTwin;
using test_host::Script;
using test_host::scripted_effects;
using test_host::TestHost;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Result<BindResult> bind_gpu(const TestHost& machine, Script& script, BindOptions options = {}) {
  const auto host = machine.host();
  return bind(host, {.targets = {at(kGpu)}}, options, scripted_effects(host, script));
}

Result<BindResult> release_gpu(const TestHost& machine, Script& script, BindOptions options = {}) {
  const auto host = machine.host();
  return release(host, {at(kGpu)}, options, scripted_effects(host, script));
}

Result<BindResult> recover_gpu(const TestHost& machine, Script& script) {
  const auto host = machine.host();
  return recover(host, scripted_effects(host, script));
}

std::vector<std::string> sysfs_writes(const Script& script) {
  std::vector<std::string> writes;
  for (const auto& entry : script.log) {
    if (entry.starts_with("write ") || entry.starts_with("modprobe ") || entry.starts_with("run "))
      writes.push_back(entry);
  }
  return writes;
}

bool is_bound(const TestHost& machine) {
  return machine.driver(kGpu) == "vfio-pci" && machine.driver(kSound) == "vfio-pci" &&
         machine.driver_override(kGpu) == "vfio-pci";
}

TEST(Bind, OverridesBeforeItUnbindsAndUnbindsTheGpuLast) {
  TestHost machine;
  Script script;
  const auto bound = bind_gpu(machine, script);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_THAT(bound->notes, IsEmpty());
  EXPECT_TRUE(is_bound(machine));
  EXPECT_EQ(machine.driver(kTwin), "nvidia");
  EXPECT_FALSE(machine.has_journal());
  EXPECT_TRUE(machine.host().exists("/dev/vfio/12"));
  const std::string d = "write /sys/bus/pci/devices/";
  EXPECT_THAT(
      sysfs_writes(script),
      ElementsAre("modprobe vfio_pci", d + kSound + "/driver_override vfio-pci",
                  d + kGpu + "/driver_override vfio-pci", d + kSound + "/driver/unbind " + kSound,
                  d + kGpu + "/driver/unbind " + kGpu,
                  "write /sys/bus/pci/drivers/vfio-pci/bind " + std::string(kGpu),
                  "write /sys/bus/pci/drivers/vfio-pci/bind " + std::string(kSound),
                  d + kSound + "/power/control on", d + kGpu + "/power/control on"));
}

TEST(Bind, NeverWritesNewId) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  ASSERT_TRUE(release_gpu(machine, script).ok());
  for (const auto& entry : script.log) EXPECT_THAT(entry, Not(HasSubstr("new_id")));
}

TEST(Bind, TwiceChangesNothing) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  const auto count = script.count;
  const auto again = bind_gpu(machine, script);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_FALSE(again->changed());
  EXPECT_EQ(script.count, count);
}

TEST(Release, GivesTheOldDriversBackAndLeavesNoTrace) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  const auto released = release_gpu(machine, script);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_THAT(*read_bound(machine.host()), IsEmpty());
  EXPECT_FALSE(machine.has_journal());
  EXPECT_FALSE(machine.host().exists("/dev/vfio/12"));
}

TEST(Release, OfACardThatGantryDidNotBindGoesToNvidia) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  machine.tree().remove("run/gantry/vfio/0000:3b:00.0.bound");
  const auto released = release_gpu(machine, script);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
  EXPECT_EQ(machine.driver(kSound), "snd_hda_intel");
  EXPECT_EQ(machine.driver_override(kGpu), "");
}

TEST(Release, OfAGpuThatAVirtualMachineUsesIsRefused) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  machine.process(5000, "qemu-system-x86", "/dev/vfio/12");
  const auto released = release_gpu(machine, script);
  ASSERT_FALSE(released.ok());
  EXPECT_EQ(released.error().code(), Errc::Busy);
  EXPECT_THAT(released.error().text(), HasSubstr("pid 5000 (qemu-system-x86 --all) has "
                                                 "/dev/vfio/12 open"));
  EXPECT_TRUE(is_bound(machine));
}

TEST(Bind, RefusesABusyGpuBeforeTheFirstWrite) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  Script script;
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("0000:3b:00.0 is in use"),
                                          HasSubstr("pid 4711"), HasSubstr("--drain")));
  EXPECT_EQ(script.count, 0);
}

TEST(Bind, DrainWaitsForTheProcess) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  Script script;
  const auto host = machine.host();
  auto effects = scripted_effects(host, script);
  int pauses = 0;
  effects.pause = [&](std::chrono::milliseconds) {
    if (++pauses == 3) machine.remove_process(4711);
  };
  const auto bound = bind(host, {.targets = {at(kGpu)}}, {.drain = true}, effects);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_EQ(pauses, 3);
  EXPECT_TRUE(is_bound(machine));
}

TEST(Bind, DrainGivesUpAtItsDeadline) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  Script script;
  const auto bound =
      bind_gpu(machine, script, {.drain = true, .drain_deadline = std::chrono::seconds(2)});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
}

TEST(Bind, StopsDcgmAndPersistenceAndStartsDcgmAgain) {
  TestHost machine;
  machine.process(811, "nvidia-persistenced", "/dev/nvidia0");
  machine.process(900, "nv-hostengine", "/dev/nvidia0", "0::/system.slice/nvidia-dcgm.service\n");
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (contains(entry, "-pm 0")) machine.remove_process(811);
    if (contains(entry, "systemctl stop")) machine.remove_process(900);
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_THAT(script.log, testing::IsSupersetOf({"run nvidia-smi -i 0000:3b:00.0 -pm 0",
                                                 "run systemctl stop nvidia-dcgm.service",
                                                 "run systemctl start nvidia-dcgm.service"}));
  script.log.clear();
  ASSERT_TRUE(release_gpu(machine, script).ok());
  EXPECT_THAT(script.log, testing::Contains("run nvidia-smi -i 0000:3b:00.0 -pm 1"));
}

TEST(Bind, AProcessThatComesAfterTheCheckIsSeenBeforeTheUnbind) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry == "modprobe vfio_pci") machine.process(4711, "python3", "/dev/nvidia0");
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

TEST(Bind, RefusesWhileAnotherGantryIsAtWork) {
  TestHost machine;
  const auto lock = lock_state(machine.host());
  ASSERT_TRUE(lock.ok());
  Script script;
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("another Gantry"), HasSubstr("fuser")));
  EXPECT_EQ(script.count, 0);
}

TEST(Bind, ACardThatVanishesBetweenCheckAndWriteIsReportedAndTheRestGoesBack) {
  TestHost machine;
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry == fmt::format("write /sys/bus/pci/devices/{0}/driver/unbind {0}", kSound)) {
      machine.tree().remove(std::string("sys/bus/pci/devices/") + kGpu);
    }
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::NotFound);
  EXPECT_THAT(bound.error().text(), HasSubstr("0000:3b:00.0 has gone from the PCI bus"));
  EXPECT_EQ(machine.driver(kSound), "snd_hda_intel");
  EXPECT_EQ(machine.driver_override(kSound), "");
  EXPECT_FALSE(machine.has_journal());
}

TEST(Bind, AnotherCardInTheSlotIsNotTouched) {
  TestHost machine;
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry == "modprobe vfio_pci")
      machine.file(std::string("sys/devices/pci0000:00/") + kGpu + "/device", "0x2335\n");
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(), HasSubstr("is another card since it was checked"));
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
  EXPECT_EQ(machine.driver_override(kGpu), "");
}

TEST(Bind, AFullDiskForTheJournalChangesNothing) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("save ")) return Error::sys(ENOSPC, entry);
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(),
              AllOf(HasSubstr("nothing was changed"), HasSubstr("No space left on device")));
  EXPECT_THAT(sysfs_writes(script), IsEmpty());
  EXPECT_EQ(machine.bindings(), before);
}

TEST(Bind, ADiskThatFillsLaterTakesEverythingBack) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  int saves = 0;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry.starts_with("save ") && ++saves > 6) return Error::sys(ENOSPC, entry);
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(), HasSubstr("No space left on device"));
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

// The unbind of the GPU never returns; as in the kernel, the driver link vanishes at its start.
void hang_unbind(TestHost& machine, Script& script) {
  script.rule = [&machine](const std::string& entry) -> Status {
    if (entry != fmt::format("write /sys/bus/pci/devices/{0}/driver/unbind {0}", kGpu)) return {};
    machine.tree().remove(std::string("sys/devices/pci0000:00/") + kGpu + "/driver");
    machine.process(6000, "gantry", "/dev/null");
    machine.file("proc/6000/stat", "6000 (gantry) D 1\n");
    return Error(Errc::Timeout, "the write did not return within 30000 ms");
  };
}

TEST(Bind, AWriteThatNeverReturnsMarksTheGpuAndTakesTheRestBack) {
  TestHost machine;
  Script script;
  hang_unbind(machine, script);
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Timeout);
  EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("0000:3b:00.0 is stuck in the kernel"),
                                          HasSubstr("reboot"), HasSubstr("gantry vfio recover")));
  EXPECT_EQ(machine.driver(kSound), "snd_hda_intel");
  const auto journals = read_journals(machine.host());
  ASSERT_EQ(journals->size(), 1U);
  EXPECT_THAT(journals->front().stuck, ElementsAre(at(kGpu)));
  // No write to the stuck function after the one that hangs: it would hang too.
  const auto last = script.log.back();
  EXPECT_THAT(last, Not(HasSubstr(std::string("devices/") + kGpu)));

  script.rule = nullptr;
  const auto again = bind_gpu(machine, script);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().text(), HasSubstr("stuck in the kernel"));
}

TEST(Recover, AStuckGpuComesBackWhenItsHolderHasGone) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  hang_unbind(machine, script);
  ASSERT_FALSE(bind_gpu(machine, script).ok());
  script.rule = nullptr;
  const auto early = recover_gpu(machine, script);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code(), Errc::Busy);
  EXPECT_THAT(early.error().text(), HasSubstr("0000:3b:00.0 is still stuck"));

  machine.remove_process(6000);
  machine.tree().remove("sys/bus/pci/drivers/nvidia/0000:3b:00.0");
  const auto later = recover_gpu(machine, script);
  ASSERT_TRUE(later.ok()) << later.error().text();
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

TEST(Bind, AFailureOnTheWayBackIsReportedBesideTheFirst) {
  TestHost machine;
  Script script;
  script.rule = [](const std::string& entry) -> Status {
    if (contains(entry, "vfio-pci/bind")) return Error::sys(EINVAL, "write bind");
    if (contains(entry, "drivers/nvidia/bind")) return Error::sys(ENODEV, "write nvidia/bind");
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(),
              AllOf(HasSubstr("bind 0000:3b:00.0 to vfio-pci"), HasSubstr("Invalid argument"),
                    HasSubstr("taking it back failed too"), HasSubstr("nvidia/bind"),
                    HasSubstr("gantry vfio recover")));
  EXPECT_TRUE(machine.has_journal());
  script.rule = nullptr;
  ASSERT_TRUE(recover_gpu(machine, script).ok());
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
}

TEST(Bind, EveryFailingStepTakesEverythingBack) {
  int steps = 0;
  for (int k = 1; k < 200; ++k) {
    TestHost machine;
    const auto before = machine.bindings();
    Script script{.fault_at = k, .fault = Fault::Fail};
    const auto bound = bind_gpu(machine, script);
    if (script.count < k) break;
    ++steps;
    if (bound.ok()) {
      EXPECT_TRUE(is_bound(machine)) << "failed effect " << k;
    } else {
      Script calm;
      if (machine.has_journal()) {
        ASSERT_TRUE(recover_gpu(machine, calm).ok()) << k;
      }
      const bool back = machine.bindings() == before;
      EXPECT_TRUE(back || is_bound(machine)) << "failed effect " << k;
    }
    EXPECT_FALSE(machine.has_journal()) << "failed effect " << k;
  }
  EXPECT_GT(steps, 20);
}

// kill -9 before and after every effect of bind or release. After recover the GPU is either fully
// bound or fully back, and the other way works again.
void kill_everywhere(Fault fault, bool releasing) {
  int kills = 0;
  for (int k = 1; k < 200; ++k) {
    TestHost machine;
    const auto before = machine.bindings();
    Script calm;
    if (releasing) {
      ASSERT_TRUE(bind_gpu(machine, calm).ok());
    }
    Script script{.fault_at = k, .fault = fault};
    bool killed = false;
    try {
      static_cast<void>(
          (releasing ? release_gpu(machine, script) : bind_gpu(machine, script)).ok());
    } catch (const Killed&) {
      killed = true;
    }
    if (!killed) break;
    ++kills;
    const auto recovered = recover_gpu(machine, calm);
    ASSERT_TRUE(recovered.ok()) << "killed at " << k << ": " << recovered.error().text();
    const bool back = machine.bindings() == before;
    EXPECT_TRUE(back || is_bound(machine)) << "killed at " << k;
    EXPECT_FALSE(machine.has_journal()) << "killed at " << k;
    ASSERT_TRUE(bind_gpu(machine, calm).ok()) << "killed at " << k;
    ASSERT_TRUE(release_gpu(machine, calm).ok()) << "killed at " << k;
    EXPECT_EQ(machine.bindings(), before) << "killed at " << k;
  }
  EXPECT_GT(kills, 20);
}

TEST(Recover, AfterAKillBeforeEveryEffectOfBind) {
  kill_everywhere(Fault::KillBefore, false);
}
TEST(Recover, AfterAKillAfterEveryEffectOfBind) {
  kill_everywhere(Fault::KillAfter, false);
}
TEST(Recover, AfterAKillBeforeEveryEffectOfRelease) {
  kill_everywhere(Fault::KillBefore, true);
}
TEST(Recover, AfterAKillAfterEveryEffectOfRelease) {
  kill_everywhere(Fault::KillAfter, true);
}

TEST(Recover, WithoutAJournalDoesNothing) {
  TestHost machine;
  Script script;
  const auto recovered = recover_gpu(machine, script);
  ASSERT_TRUE(recovered.ok());
  EXPECT_FALSE(recovered->changed());
}

TEST(Recover, ADamagedJournalIsAnErrorWithARemedy) {
  TestHost machine;
  machine.file("run/gantry/vfio/0000:3b:00.0.journal", "{\"version\":1");
  Script script;
  const auto recovered = recover_gpu(machine, script);
  ASSERT_FALSE(recovered.ok());
  EXPECT_EQ(recovered.error().code(), Errc::Corrupt);
  EXPECT_THAT(recovered.error().text(), HasSubstr("sudo rm "));
}

}  // namespace
}  // namespace gantry::vfio
