// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/owner_change.hpp"

#include "gpu/ownership/change_lock.hpp"
#include "gpu/ownership/owner_change_internal.hpp"
#include "support/tree.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>

namespace gantry::ownership {
namespace {

using model::AllocationMode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const model::PciAddress changed_gpu{.bus = 0x3b};
const GpuUsage not_in_use{.withdrawn = true};
const OwnerChange to_vm{.gpu = changed_gpu,
                        .to = Owner::Vm,
                        .use = AllocationMode::Vm,
                        .what = "gantry vfio bind 0000:3b:00.0"};
const OwnerChange back_to_plugin{.gpu = changed_gpu,
                                 .to = Owner::Plugin,
                                 .use = AllocationMode::Whole,
                                 .what = "gantry vfio release 0000:3b:00.0"};

// A machine whose "driver" is a file, which acts write.
struct ChangedMachine {
  test::Tree tree;
  sys::Host host = tree.host();
  ChangedMachine() { tree.file("driver", "nvidia"); }

  std::string driver() const { return *host.read("/driver"); }
  OwnershipState state() const {
    auto state = OwnershipStore::peek(host);
    EXPECT_TRUE(state.ok());
    return state.ok() ? *state : OwnershipState{};
  }
  Owner owner() const {
    const auto now = state();
    return now.find(changed_gpu) == nullptr ? Owner::Plugin : now.find(changed_gpu)->owner;
  }
  Status bind(std::string_view driver) {
    tree.file("driver", driver);
    return {};
  }
  Status to_virtual_machine() {
    return change_owner(host, to_vm, not_in_use, [&] { return bind("vfio-pci"); });
  }
  Status back() {
    return change_owner(host, back_to_plugin, not_in_use, [&] { return bind("nvidia"); });
  }
};

void expect_ok(const Status& status, const std::string& where = "") {
  EXPECT_TRUE(status.ok()) << where << ": " << status.error().text();
}

TEST(OwnerChange, WritesTheOwnerAfterTheAct) {
  ChangedMachine machine;
  bool acted = false;
  expect_ok(change_owner(machine.host, to_vm, not_in_use, [&]() -> Status {
    acted = true;
    EXPECT_EQ(machine.owner(), Owner::Plugin);
    const auto state = machine.state();
    EXPECT_THAT(state.intents, SizeIs(1)) << "on disk before the act";
    EXPECT_EQ(state.intents.at(0).what, to_vm.what);
    EXPECT_TRUE(OwnershipStore::open(machine.host).ok()) << "the ledger's lock is free";
    EXPECT_THAT(abandoned_changes(machine.host, state), IsEmpty()) << "its process lives";
    return {};
  }));
  EXPECT_TRUE(acted);
  EXPECT_EQ(machine.owner(), Owner::Vm);
  EXPECT_THAT(machine.state().intents, IsEmpty());
}

TEST(OwnerChange, KnowsTheUuidThatTheDriverShows) {
  ChangedMachine machine;
  machine.tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information", "GPU UUID: \t GPU-a\n");
  expect_ok(machine.to_virtual_machine());
  const auto state = machine.state();
  ASSERT_NE(state.find(model::GpuUuid{"GPU-a"}), nullptr);
  EXPECT_EQ(state.find(model::GpuUuid{"GPU-a"})->gpu, changed_gpu);
}

TEST(OwnerChange, MeetsAnotherChangeOfTheSameGpu) {
  ChangedMachine machine;
  expect_ok(change_owner(machine.host, to_vm, not_in_use, [&]() -> Status {
    const auto second = machine.back();
    EXPECT_EQ(second.error().code(), Errc::Busy);
    EXPECT_THAT(second.error().text(), HasSubstr("gantry vfio bind"));
    EXPECT_THAT(second.error().text(), HasSubstr(fmt::format("process {}", ::getpid())));
    EXPECT_THAT(second.error().text(), HasSubstr("since 20"));
    auto other = to_vm;
    other.gpu.bus = 0x5e;
    expect_ok(change_owner(machine.host, other, not_in_use, [] { return Status{}; }),
              "another GPU does not wait");
    return {};
  }));
}

TEST(OwnerChange, RefusesAGpuThatIsInUse) {
  ChangedMachine machine;
  bool acted = false;
  const auto act = [&]() -> Status {
    acted = true;
    return {};
  };
  const auto refusal = [&](const GpuUsage& usage) {
    return change_owner(machine.host, to_vm, usage, act).error().text();
  };
  EXPECT_THAT(refusal({}), HasSubstr("still offered"));
  EXPECT_THAT(refusal({.withdrawn = true, .holders = {"default/train"}}),
              HasSubstr("default/train"));
  EXPECT_THAT(refusal({.withdrawn = true, .pids = {4711}}), HasSubstr("ps 4711"));
  EXPECT_FALSE(acted);
  EXPECT_THAT(machine.state().intents, IsEmpty());
}

TEST(OwnerChange, AFailedActThatUndidItselfLeavesNothing) {
  ChangedMachine machine;
  const auto failed = change_owner(machine.host, to_vm, not_in_use,
                                   [] { return Status(Error(Errc::Busy, "bind: busy")); });
  EXPECT_EQ(failed.error().text(), "bind: busy");
  EXPECT_THAT(machine.state().intents, IsEmpty());
  EXPECT_EQ(machine.owner(), Owner::Plugin);
  expect_ok(machine.to_virtual_machine());
}

TEST(OwnerChange, AnActThatHangsKeepsItsIntent) {
  ChangedMachine machine;
  const auto failed = change_owner(machine.host, to_vm, not_in_use, [] {
    return Status(Error(Errc::Timeout, "stuck in the kernel"));
  });
  EXPECT_EQ(failed.error().code(), Errc::Timeout);
  EXPECT_THAT(abandoned_changes(machine.host, machine.state()), SizeIs(1));
  // Only the same change and the way back may follow.
  auto elsewhere = to_vm;
  elsewhere.to = Owner::Dra;
  elsewhere.use = AllocationMode::Whole;
  const auto refused = change_owner(machine.host, elsewhere, not_in_use, [] { return Status{}; });
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_THAT(refused.error().remedy(), HasSubstr("gantry vfio bind 0000:3b:00.0"));
  expect_ok(machine.back());
  EXPECT_THAT(machine.state().intents, IsEmpty());
  EXPECT_EQ(machine.owner(), Owner::Plugin);
}

TEST(OwnerChange, ARepetitionThatDoesNothingLeavesTheChangeUnfinished) {
  ChangedMachine machine;
  const auto half = [&] {
    machine.tree.file("driver", "none");
    return Status(Error(Errc::Timeout, "stuck in the kernel"));
  };
  EXPECT_FALSE(change_owner(machine.host, to_vm, not_in_use, half).ok());
  EXPECT_FALSE(change_owner(machine.host, to_vm, not_in_use, [] {
                 return Status(Error(Errc::Busy, "another Gantry is at work"));
               }).ok());
  EXPECT_THAT(machine.state().intents, SizeIs(1)) << "the GPU has no driver";
  // An act that says that all is as it was before has ended the change.
  EXPECT_FALSE(change_owner(machine.host, to_vm, not_in_use, [] {
                 return Status(Error(Errc::Denied, "taken back"));
               }).ok());
  EXPECT_THAT(machine.state().intents, IsEmpty());
}

// Claims on instances that the change keeps are not in its way; the ledger remembers which.
TEST(OwnerChange, OfPartsAsksOnlyAboutTheOthers) {
  ChangedMachine machine;
  {
    auto ledger = OwnershipStore::open(machine.host);
    ASSERT_TRUE(ledger.ok());
    expect_ok(ledger->adopt(changed_gpu, {}, Owner::Dra, AllocationMode::Mig));
    expect_ok(ledger->claim({.id = "claim-1",
                             .owner = Owner::Dra,
                             .gpu = changed_gpu,
                             .part = "MIG-kept",
                             .what = "claim default/train"}));
  }
  OwnerChange change{.gpu = changed_gpu,
                     .to = Owner::Dra,
                     .use = AllocationMode::Mig,
                     .what = "gantry mig apply",
                     .parts = ChangedParts{.going = {"MIG-kept"}}};
  const auto act = [&]() -> Status {
    EXPECT_EQ(machine.state().intents.at(0).kept, change.parts->kept);
    return {};
  };
  const auto refused = change_owner(machine.host, change, not_in_use, act);
  EXPECT_THAT(refused.error().text(), HasSubstr("claim default/train"));
  change.parts = ChangedParts{.kept = {"MIG-kept"}, .going = {"MIG-going"}};
  expect_ok(change_owner(machine.host, change, not_in_use, act));
  EXPECT_EQ(machine.owner(), Owner::Dra);
}

TEST(OwnerChange, CanBeSettledTwice) {
  ChangedMachine machine;
  auto ledger = OwnershipStore::open(machine.host);
  ASSERT_TRUE(ledger.ok());
  expect_ok(ledger->adopt(changed_gpu, {}, Owner::Plugin, AllocationMode::Whole));
  const auto intent = intent_of(to_vm);
  expect_ok(ledger->begin(intent, not_in_use));
  expect_ok(settle_change(*ledger, intent, ActOutcome::Done));
  expect_ok(settle_change(*ledger, intent, ActOutcome::Done));
  EXPECT_EQ(ledger->state().find(changed_gpu)->owner, Owner::Vm);
  auto other = intent;
  other.to = Owner::Plugin;
  EXPECT_EQ(settle_change(*ledger, other, ActOutcome::Done).error().code(), Errc::NotFound);
}

TEST(OwnerChange, SaysThatAnAgentHasTheLedger) {
  ChangedMachine machine;
  const auto agent = OwnershipStore::open(machine.host);
  ASSERT_TRUE(agent.ok());
  const auto refused = machine.to_virtual_machine();
  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_EQ(machine.driver(), "nvidia");
}

// Runs the change in a process that is killed at a step; `half` is the driver that the act leaves
// behind when it is killed in the middle, "" if it is killed elsewhere.
void run_killed(ChangedMachine& machine, const OwnerChange& change, ChangeStep kill_at,
                const std::string& half) {
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto act = [&]() -> Status {
      if (!half.empty()) {
        machine.tree.file("driver", half);
        ::kill(::getpid(), SIGKILL);
      }
      return machine.bind(change.to == Owner::Vm ? "vfio-pci" : "nvidia");
    };
    (void)change_owner(machine.host, change, not_in_use, act, {}, [&](ChangeStep step) {
      if (step == kill_at) ::kill(::getpid(), SIGKILL);
    });
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the step was not reached";
}

struct Kill {
  ChangeStep step;
  std::string half;  // see run_killed
};
const std::array kills{Kill{ChangeStep::Locked, ""},        Kill{ChangeStep::Adopted, ""},
                       Kill{ChangeStep::IntentWritten, ""}, Kill{ChangeStep::Settled, "none"},
                       Kill{ChangeStep::Acted, ""},         Kill{ChangeStep::Settled, ""}};

std::string describe(const Kill& kill) {
  return fmt::format("step {}, {}", static_cast<int>(kill.step), kill.half);
}

TEST(OwnerChange, CanBeRepeatedAfterAKillAtEveryStep) {
  for (const auto& kill : kills) {
    ChangedMachine machine;
    run_killed(machine, to_vm, kill.step, kill.half);
    const auto state = machine.state();
    if (machine.driver() != "nvidia") {
      EXPECT_TRUE(state.intents.size() == 1 || machine.owner() == Owner::Vm)
          << describe(kill) << ": the GPU changed, and the ledger does not know it";
    }
    EXPECT_EQ(abandoned_changes(machine.host, state).size(), state.intents.size())
        << describe(kill);
    expect_ok(machine.to_virtual_machine(), describe(kill));
    EXPECT_EQ(machine.driver(), "vfio-pci");
    EXPECT_EQ(machine.owner(), Owner::Vm);
    EXPECT_THAT(machine.state().intents, IsEmpty());
  }
}

TEST(OwnerChange, CanBeTakenBackAfterAKillAtEveryStep) {
  for (const auto& kill : kills) {
    ChangedMachine machine;
    run_killed(machine, to_vm, kill.step, kill.half);
    expect_ok(machine.back(), describe(kill));
    EXPECT_EQ(machine.driver(), "nvidia");
    EXPECT_EQ(machine.owner(), Owner::Plugin);
    EXPECT_THAT(machine.state().intents, IsEmpty());
  }
}

TEST(OwnerChange, TheWayBackSurvivesKillsAsWell) {
  for (const auto& kill : kills) {
    ChangedMachine machine;
    expect_ok(machine.to_virtual_machine());
    run_killed(machine, back_to_plugin, kill.step, kill.half);
    expect_ok(machine.back(), describe(kill));
    EXPECT_EQ(machine.owner(), Owner::Plugin);
    EXPECT_EQ(machine.driver(), "nvidia");
    EXPECT_THAT(machine.state().intents, IsEmpty());
  }
}

TEST(ChangeLock, EndsWithItsProcess) {
  ChangedMachine machine;
  EXPECT_FALSE(ChangeLock::is_taken(machine.host, changed_gpu));
  {
    const auto lock = ChangeLock::take(machine.host, changed_gpu);
    ASSERT_TRUE(lock.ok());
    EXPECT_TRUE(ChangeLock::is_taken(machine.host, changed_gpu));
    EXPECT_THAT(ChangeLock::take(machine.host, changed_gpu).error().text(), HasSubstr("fuser"));
  }
  EXPECT_FALSE(ChangeLock::is_taken(machine.host, changed_gpu));
}

}  // namespace
}  // namespace gantry::ownership
