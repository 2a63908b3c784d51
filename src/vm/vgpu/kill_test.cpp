// SPDX-License-Identifier: Apache-2.0
// kill -9 before and after every act of a change, then the next command: the machine has the wanted
// vGPUs or the old ones, and nothing is left that must be mended by hand.
#include "vm/vgpu/vgpu_machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace gantry::vgpu {
namespace {

using ::testing::AnyOf;

struct KillCase {
  const char* machine;
  const char* small;
  const char* large;
};

void PrintTo(const KillCase& one, std::ostream* out) {
  *out << one.machine;
}

class Kill : public ::testing::TestWithParam<KillCase> {
 protected:
  // Two small ones on the first GPU; the second has nothing, not even virtual functions.
  std::vector<DesiredVgpus> first() const { return {{first_gpu(), {{GetParam().small, 2}}}}; }
  // Another size on the first GPU, two sizes on the second, if it can have them.
  std::vector<DesiredVgpus> second() const {
    return {{first_gpu(), {{GetParam().large, 1}}},
            {second_gpu(), is_turing() ? std::map<std::string, unsigned>{{GetParam().large, 2}}
                                       : std::map<std::string, unsigned>{{GetParam().large, 1},
                                                                         {GetParam().small, 1}}}};
  }
  static bool is_turing() { return std::string_view(GetParam().machine) == "vgpu-t4"; }
  std::string old_state() const { return fmt::format("{0} {0}|", GetParam().small); }
  std::string new_state() const {
    const std::string large = GetParam().large;
    const std::string small = is_turing() ? large : GetParam().small;
    return fmt::format("{}|{} {}", large, std::min(small, large), std::max(small, large));
  }

  std::unique_ptr<VgpuMachine> fresh() const {
    auto machine = std::make_unique<VgpuMachine>(GetParam().machine);
    EXPECT_TRUE(apply(machine->host(), first(), machine->actions()).ok());
    EXPECT_EQ(types_of(machine->gpus()), old_state());
    return machine;
  }

  int acts_of_the_change() const {
    const auto machine = fresh();
    EXPECT_TRUE(apply(machine->host(), second(), machine->actions()).ok());
    EXPECT_EQ(types_of(machine->gpus()), new_state());
    return machine->acts();
  }

  std::unique_ptr<VgpuMachine> killed(int at, bool before) const {
    auto machine = fresh();
    EXPECT_THROW((void)apply(machine->host(), second(), machine->actions(at, before)),
                 KilledForTest);
    return machine;
  }

  void expect_usable(VgpuMachine& machine) const {
    EXPECT_FALSE(read_journal(machine.host())->has_value());
    const auto specs = read_intent(machine.host())->vgpus;
    EXPECT_TRUE(plan_exact(machine.gpus(), {first_gpu(), second_gpu()}, specs)->steps.empty())
        << "the stored intent is not what exists";
  }

  template <class Check>
  void at_every_act(const Check& check) const {
    const int acts = acts_of_the_change();
    ASSERT_GT(acts, 6);
    // Between two acts nothing is written: before one is the same moment as after the one before.
    for (int at = 1; at <= acts; ++at) {
      for (const bool before : {true, false}) {
        if (before && at > 1) continue;
        SCOPED_TRACE(fmt::format("killed {} act {} of {}", before ? "before" : "after", at, acts));
        const auto machine = killed(at, before);
        check(*machine);
      }
    }
  }
};

TEST_P(Kill, ThenTheSameApplyCompletesIt) {
  at_every_act([&](VgpuMachine& machine) {
    const auto again = apply(machine.host(), second(), machine.actions());
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(types_of(machine.gpus()), new_state());
    expect_usable(machine);
  });
}

TEST_P(Kill, ThenRestoreGivesTheOldStateOrTheNewOne) {
  at_every_act([&](VgpuMachine& machine) {
    const auto again = restore(machine.host(), machine.actions());
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_THAT(types_of(machine.gpus()), AnyOf(old_state(), new_state()));
    expect_usable(machine);
  });
}

TEST_P(Kill, ThenAnApplyOfOneGpuAlsoMendsTheOther) {
  at_every_act([&](VgpuMachine& machine) {
    const auto again = apply(machine.host(), first(), machine.actions());
    ASSERT_TRUE(again.ok()) << again.error().text();
    const auto states = types_of(machine.gpus());
    const auto other = new_state().substr(new_state().find('|'));
    EXPECT_THAT(states, AnyOf(old_state(), old_state().substr(0, old_state().size() - 1) + other));
    expect_usable(machine);
  });
}

TEST_P(Kill, ThenARebootAndRestoreGiveTheOldStateOrTheNewOne) {
  at_every_act([&](VgpuMachine& machine) {
    machine.reboot();
    const auto again = restore(machine.host(), machine.actions());
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_THAT(types_of(machine.gpus()), AnyOf(old_state(), new_state()));
    expect_usable(machine);
  });
}

INSTANTIATE_TEST_SUITE_P(Frameworks, Kill,
                         ::testing::Values(KillCase{"vgpu-t4", "T4-4Q", "T4-8Q"},
                                           KillCase{"vgpu-a10", "A10-4Q", "A10-12Q"},
                                           KillCase{"vgpu-l40s", "L40S-8Q", "L40S-16Q"}),
                         [](const auto& one) {
                           std::string name = one.param.machine;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// vGPUs that another tool made are in no intent. A kill before the first step must not cost them.
TEST(KillUnmanaged, KeepsTheVgpusOfAnotherTool) {
  for (const bool undone : {false, true}) {
    VgpuMachine machine("vgpu-t4");
    ASSERT_TRUE(apply(machine.host(), {{first_gpu(), {{"T4-4Q", 2}}}}, machine.actions()).ok());
    ASSERT_TRUE(machine.actions().erase(kIntentPath).ok());
    const Addition addition{.gpu = first_gpu(), .type = "T4-4Q"};
    if (undone) {
      machine.fault = [](std::string_view path, std::string_view) -> Status {
        return path.ends_with("/create") ? Status(Error::sys(EIO, "write")) : Status();
      };
    }
    // The plan is stored, the intent is not yet; or all was undone and the old intent is stored.
    const int at = undone ? 4 : 1;
    EXPECT_THROW((void)create(machine.host(), addition, machine.actions(at, false)), KilledForTest);
    machine.fault = nullptr;
    ASSERT_TRUE(read_journal(machine.host())->has_value());
    const auto mended = restore(machine.host(), machine.actions());
    ASSERT_TRUE(mended.ok()) << mended.error().text();
    EXPECT_EQ(types_of(machine.gpus()), "T4-4Q T4-4Q|") << undone;
    EXPECT_FALSE(read_journal(machine.host())->has_value());
  }
}

// A kill during the repair of a kill.
TEST(KillAgain, StillEndsInAKnownState) {
  for (int at = 1; at <= 12; ++at) {
    VgpuMachine machine("vgpu-t4");
    ASSERT_TRUE(apply(machine.host(), {{first_gpu(), {{"T4-4Q", 2}}}}, machine.actions()).ok());
    const std::vector<DesiredVgpus> wanted{{first_gpu(), {{"T4-8Q", 2}}}};
    EXPECT_THROW((void)apply(machine.host(), wanted, machine.actions(4, false)), KilledForTest);
    bool ended = false;
    try {
      (void)restore(machine.host(), machine.actions(at, at % 2 == 0));
      ended = true;
    } catch (const KilledForTest&) {
    }
    const auto mended = restore(machine.host(), machine.actions());
    ASSERT_TRUE(mended.ok()) << mended.error().text();
    EXPECT_EQ(types_of(machine.gpus()), "T4-8Q T4-8Q|") << at << (ended ? " ended" : "");
  }
}

}  // namespace
}  // namespace gantry::vgpu
