// SPDX-License-Identifier: Apache-2.0
// kill -9, power loss and failure at every effect of an installation, an upgrade and a removal.
// Then the same command again must end as if nothing had happened.
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace gantry::driver_setup {
namespace {

constexpr int kFewestEffects = 30;

// What is done, on a machine that may have a driver already.
struct Case {
  const char* name;
  bool has_old;
  bool removes;
};

class EveryEffect : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<SetupMachine> fresh() const {
    auto machine = std::make_unique<SetupMachine>();
    machine->archive(kNewDriver);
    machine->archive(kOldDriver);
    if (GetParam().has_old && !machine->install(kOldDriver).ok()) ADD_FAILURE() << "no old driver";
    if (GetParam().removes && !machine->install(kNewDriver).ok()) ADD_FAILURE() << "no driver";
    machine->script = {};
    return machine;
  }

  Status act(SetupMachine& machine) const {
    auto done = GetParam().removes ? machine.remove() : machine.install(kNewDriver);
    if (done.ok()) return {};
    return std::move(done).error();
  }

  // The same command again, whatever the first one left behind.
  void expect_done_again(SetupMachine& machine) const {
    machine.script = {};
    const auto again = act(machine);
    if (GetParam().removes) {
      // The record may be gone already: then nothing is left to be removed.
      EXPECT_TRUE(again.ok() || again.error().code() == Errc::NotFound) << again.error().text();
      expect_removed(machine);
      return;
    }
    ASSERT_TRUE(again.ok()) << again.error().text();
    machine.expect_installed(kNewDriver);
  }

  static void expect_removed(SetupMachine& machine) {
    SetupMachine untouched;
    untouched.archive(kNewDriver);
    untouched.archive(kOldDriver);
    EXPECT_EQ(machine.loaded(), "");
    auto files = machine.files();
    for (const auto& [path, content] : untouched.files()) {
      EXPECT_TRUE(files.contains(path)) << path << " is gone";
      EXPECT_EQ(files[path], content) << path;
      files.erase(path);
    }
    for (const auto& [path, content] : files) ADD_FAILURE() << path << " is left: " << content;
  }

  // Ends at each effect in turn until the command does not reach so far.
  template <class Check>
  int at_every_effect(Fault fault, const Check& check) const {
    int effects = 0;
    for (int at = 1;; ++at) {
      auto machine = fresh();
      machine->script = {.fault_at = at, .fault = fault};
      bool killed = false;
      try {
        static_cast<void>(act(*machine).ok());
      } catch (const KilledForTest&) {
        killed = true;
      }
      if (!killed) break;
      ++effects;
      SCOPED_TRACE(fmt::format("effect {}: {}", at, machine->script.log.back()));
      check(*machine);
      if (::testing::Test::HasFailure()) break;
    }
    return effects;
  }
};

// Between two effects nothing is written: before one is the same moment as after the one before.
TEST_P(EveryEffect, KilledAfterIt) {
  EXPECT_GT(
      at_every_effect(Fault::KillAfter, [&](SetupMachine& machine) { expect_done_again(machine); }),
      kFewestEffects);
}

TEST_P(EveryEffect, KilledInTheMiddleOfIt) {
  EXPECT_GT(at_every_effect(Fault::KillHalfway,
                            [&](SetupMachine& machine) {
                              expect_done_again(machine);
                              if (GetParam().removes) return;
                              machine.script = {};
                              expect_ok(machine.remove());
                              expect_removed(machine);
                            }),
            kFewestEffects);
}

TEST_P(EveryEffect, PowerLostAfterIt) {
  EXPECT_GT(at_every_effect(Fault::KillAfter,
                            [&](SetupMachine& machine) {
                              machine.lose_power();
                              expect_done_again(machine);
                            }),
            kFewestEffects);
}

// The unit of the boot runs between the power loss and the same command.
TEST_P(EveryEffect, PowerLostAfterItAndLoadedAtBoot) {
  if (!GetParam().has_old) GTEST_SKIP() << "there is nothing to load at boot";
  at_every_effect(Fault::KillAfter, [&](SetupMachine& machine) {
    machine.lose_power();
    machine.script = {};
    const auto loaded = machine.load();
    if (loaded.ok()) {
      EXPECT_THAT(machine.loaded(), ::testing::AnyOf(kOldDriver, kNewDriver));
    }
    expect_done_again(machine);
  });
}

TEST_P(EveryEffect, KilledAndThenRemoved) {
  if (GetParam().removes) GTEST_SKIP() << "the other tests remove again";
  for (const auto fault : {Fault::KillAfter, Fault::KillHalfway}) {
    at_every_effect(fault, [&](SetupMachine& machine) {
      machine.script = {};
      const auto removed = machine.remove();
      EXPECT_TRUE(removed.ok() || removed.error().code() == Errc::NotFound)
          << removed.error().text();
      expect_removed(machine);
    });
  }
}

// A second kill, in the repair of the first one.
TEST_P(EveryEffect, KilledTwice) {
  for (int first = 3; first < 60; first += 8) {
    for (int second = 2; second < 40; second += 9) {
      SCOPED_TRACE(fmt::format("killed at {}, then at {}", first, second));
      auto machine = fresh();
      for (const int at : {first, second}) {
        machine->script = {.fault_at = at, .fault = Fault::KillHalfway};
        try {
          static_cast<void>(act(*machine).ok());
        } catch (const KilledForTest&) {
        }
      }
      expect_done_again(*machine);
      if (HasFailure()) return;
    }
  }
}

// An effect that fails is taken back with all before it, or the journal says that it was not.
TEST_P(EveryEffect, FailsWithAFullDisk) {
  if (GetParam().removes) GTEST_SKIP() << "a removal goes on, it is not taken back";
  int failures = 0;
  for (int at = 1;; ++at) {
    auto machine = fresh();
    const auto before = machine->files();
    machine->script = {.fault_at = at, .fault = Fault::Fail, .err = ENOSPC};
    const auto done = act(*machine);
    if (machine->script.count < at) break;
    SCOPED_TRACE(
        fmt::format("effect {}: {}", at, machine->script.log[static_cast<std::size_t>(at - 1)]));
    if (!done.ok()) {
      ++failures;
      EXPECT_EQ(machine->loaded(), GetParam().has_old ? kOldDriver : "");
      if (done.error().code() != Errc::Internal) {
        EXPECT_FALSE(machine->has_journal());
        auto after = machine->files();
        after.erase("/var/lib/gantry");
        after.erase("/var/lib/gantry/driver-install");
        after.erase("/var/lib/gantry/driver-install/lock");
        for (const auto& [path, content] : after)
          EXPECT_TRUE(before.contains(path) && before.at(path) == content) << path;
      }
    }
    expect_done_again(*machine);
    if (HasFailure()) break;
  }
  EXPECT_GT(failures, kFewestEffects / 2);
}

INSTANTIATE_TEST_SUITE_P(Driver, EveryEffect,
                         ::testing::Values(Case{"Install", false, false},
                                           Case{"Upgrade", true, false},
                                           Case{"Remove", true, true}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(FullDisk, TheSentenceSaysHowMuchIsNeeded) {
  SetupMachine machine;
  machine.script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("copy ")) return Error::sys(ENOSPC, entry);
    return {};
  };
  const auto full = machine.install(kNewDriver);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().text(), ::testing::AllOf(::testing::HasSubstr("the disk is full"),
                                                    ::testing::HasSubstr("all is as it was")));
  machine.script = {};
  EXPECT_TRUE(machine.install(kNewDriver).ok());
}

}  // namespace
}  // namespace gantry::driver_setup
