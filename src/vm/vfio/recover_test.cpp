// SPDX-License-Identifier: Apache-2.0
// Writes that never return, failures at every step, and kill -9 at every step.
#include "base/core/text.hpp"
#include "vm/vfio/bind.hpp"
#include "vm/vfio/host_for_test.hpp"
#include "vm/vfio/journal.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

namespace gantry::vfio {
namespace {

using test_host::at;
using test_host::bind_gpu;
using test_host::Fault;
using test_host::is_bound;
using test_host::kGpu;
using test_host::kSound;
using test_host::recover_gpu;
using test_host::release_gpu;
using test_host::Script;
using test_host::scripted_effects;
using test_host::SimulatedKill;
using test_host::TestHost;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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

Result<BindResult> bind_both(const TestHost& machine, Script& script, bool stuck_one_first) {
  PassthroughRequest request{.targets = {at(test_host::kTwin), at(kGpu)}};
  if (stuck_one_first) std::swap(request.targets[0], request.targets[1]);
  return bind(machine.host(), request, {}, scripted_effects(machine.host(), script));
}

TEST(Bind, OneOfSeveralThatIsStuckDoesNotKeepTheOthers) {
  for (const bool stuck_one_first : {false, true}) {
    TestHost machine;
    Script script;
    hang_unbind(machine, script);
    const auto bound = bind_both(machine, script, stuck_one_first);
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code(), Errc::Timeout);
    EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("0000:3b:00.0 is stuck in the kernel"),
                                            HasSubstr("0000:5e:00.0 is as before")));
    EXPECT_EQ(machine.driver(test_host::kTwin), "nvidia");
    EXPECT_EQ(machine.driver_override(test_host::kTwin), "");
    const auto journals = read_journals(machine.host());
    ASSERT_EQ(journals->size(), 1U);
    EXPECT_THAT(journals->front().targets, ElementsAre(at(kGpu)));
    EXPECT_THAT(journals->front().stuck, ElementsAre(at(kGpu)));

    // The other one can be bound meanwhile.
    script.rule = nullptr;
    const PassthroughRequest other{.targets = {at(test_host::kTwin)}};
    const auto host = machine.host();
    const auto again = bind(host, other, {}, scripted_effects(host, script));
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(machine.driver(test_host::kTwin), "vfio-pci");

    machine.remove_process(6000);
    machine.tree().remove("sys/bus/pci/drivers/nvidia/0000:3b:00.0");
    ASSERT_TRUE(recover_gpu(machine, script).ok());
    EXPECT_EQ(machine.driver(kGpu), "nvidia");
    EXPECT_EQ(machine.driver(kSound), "snd_hda_intel");
    EXPECT_EQ(machine.driver(test_host::kTwin), "vfio-pci") << "recover leaves it alone";
    EXPECT_FALSE(machine.has_journal());
  }
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

// An agent that reads its program from a disk at that moment is no sign of a stuck write.
TEST(Recover, AProcessThatWaitsForAMomentIsNotStuck) {
  TestHost machine;
  Script script;
  hang_unbind(machine, script);
  ASSERT_FALSE(bind_gpu(machine, script).ok());
  script.rule = nullptr;
  machine.tree().remove("sys/bus/pci/drivers/nvidia/0000:3b:00.0");
  const std::jthread disk([&machine] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    machine.file("proc/6000/stat", "6000 (gantry) S 1\n");
  });
  const auto recovered = recover_gpu(machine, script);
  EXPECT_TRUE(recovered.ok()) << recovered.error().text();
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
    } catch (const SimulatedKill&) {
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
  // A release has fewer steps: it loads no module and takes no unbind lock.
  EXPECT_GT(kills, releasing ? 12 : 20);
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

TEST(Recover, OfOneGpuSaysWhetherItWasTakenBack) {
  TestHost machine;
  Script script;
  const auto host = machine.host();
  const auto none = recover(host, at(kGpu), scripted_effects(host, script));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Errc::NotFound);

  Script killed{.fault_at = 3, .fault = Fault::KillAfter};
  EXPECT_THROW(static_cast<void>(bind_gpu(machine, killed).ok()), SimulatedKill);
  const auto back = recover(host, at(kGpu), scripted_effects(host, script));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_TRUE(back->taken_back);
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
}

// A GPU that was bound before gives the journal neither its name nor its record.
TEST(Recover, ABoundGpuDoesNotHideTheJournalOfAnother) {
  TestHost machine;
  const auto before = machine.bindings();
  Script calm;
  const auto host = machine.host();
  ASSERT_TRUE(bind_gpu(machine, calm).ok());
  Script killed{.fault_at = 4, .fault = Fault::KillAfter};
  const auto both = [&] {
    const PassthroughRequest request{.targets = {at(kGpu), at(test_host::kTwin)}};
    return bind(host, request, {}, scripted_effects(host, killed)).ok();
  };
  EXPECT_THROW(static_cast<void>(both()), SimulatedKill);
  ASSERT_TRUE(release_gpu(machine, calm).ok());
  EXPECT_TRUE(machine.has_journal());
  ASSERT_TRUE(recover_gpu(machine, calm).ok());
  EXPECT_EQ(machine.bindings(), before);
}

TEST(Recover, AFullDiskDoesNotStopTheWayBack) {
  TestHost machine;
  const auto before = machine.bindings();
  Script killed{.fault_at = 6, .fault = Fault::KillAfter};
  EXPECT_THROW(static_cast<void>(bind_gpu(machine, killed).ok()), SimulatedKill);
  Script full;
  full.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("save ")) return Error::sys(ENOSPC, entry);
    return {};
  };
  const auto recovered = recover_gpu(machine, full);
  ASSERT_TRUE(recovered.ok()) << recovered.error().text();
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

TEST(Release, OfAGpuWhoseBindWasKilledSaysHowToGoOn) {
  TestHost machine;
  Script killed{.fault_at = 6, .fault = Fault::KillAfter};
  EXPECT_THROW(static_cast<void>(bind_gpu(machine, killed).ok()), SimulatedKill);
  Script calm;
  const auto released = release_gpu(machine, calm);
  ASSERT_FALSE(released.ok());
  EXPECT_THAT(released.error().text(),
              AllOf(HasSubstr("0000:3b:00.0 cannot be released: a bind of "),
                    HasSubstr("gantry vfio recover")));
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
