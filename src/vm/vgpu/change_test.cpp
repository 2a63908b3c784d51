// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/change.hpp"

#include "vm/vgpu/vgpu_machine_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace gantry::vgpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string text_of(const Result<ChangeReport>& report) {
  return report.ok() ? "done" : report.error().text();
}

bool interrupted(VgpuMachine& machine) {
  return read_journal(machine.host())->has_value();
}

TEST(Apply, CreatesOnEachFramework) {
  for (const auto& [name, type] :
       {std::pair{"vgpu-t4", "T4-4Q"}, {"vgpu-a10", "A10-4Q"}, {"vgpu-l40s", "L40S-8Q"}}) {
    VgpuMachine machine(name);
    const std::vector<DesiredVgpus> wanted{{first_gpu(), {{type, 2}}}, {second_gpu(), {{type, 1}}}};
    const auto done = apply(machine.host(), wanted, machine.actions());
    ASSERT_EQ(text_of(done), "done") << name;
    EXPECT_EQ(types_of(machine.gpus()), fmt::format("{0} {0}|{0}", type));
    EXPECT_EQ(read_intent(machine.host())->vgpus.size(), 3U);
    EXPECT_FALSE(interrupted(machine));
    const auto again = apply(machine.host(), wanted, machine.actions());
    EXPECT_THAT(again->steps, IsEmpty()) << "it is there already";
    EXPECT_EQ(machine.acts(), 0);
  }
}

TEST(Apply, ReplacesSizesAndMixesThem) {
  VgpuMachine machine("vgpu-a10");
  ASSERT_EQ(text_of(apply(machine.host(), {{first_gpu(), {{"A10-4Q", 6}}}}, machine.actions())),
            "done");
  const std::vector<DesiredVgpus> wanted{{first_gpu(), {{"A10-12Q", 1}, {"A10-4Q", 2}}}};
  ASSERT_EQ(text_of(apply(machine.host(), wanted, machine.actions())), "done");
  EXPECT_EQ(types_of(machine.gpus()), "A10-12Q A10-4Q A10-4Q|");
  const auto full =
      apply(machine.host(), {{first_gpu(), {{"A10-12Q", 1}, {"A10-4Q", 3}}}}, machine.actions());
  EXPECT_THAT(text_of(full), HasSubstr("1 A10-12Q, 3 A10-4Q together"));
  EXPECT_EQ(machine.acts(), 0) << "a third has no place, though 4 GiB are free";
}

TEST(Apply, WithDryRunChangesNothing) {
  VgpuMachine machine("vgpu-a10");
  const auto report =
      apply(machine.host(), {{first_gpu(), {{"A10-4Q", 1}}}}, machine.actions(), {.dry_run = true});
  ASSERT_EQ(text_of(report), "done");
  EXPECT_EQ(report->steps.size(), 1U);
  EXPECT_THAT(report->notes.front(), HasSubstr("when the virtual functions are enabled"));
  EXPECT_EQ(machine.acts(), 0);
  EXPECT_FALSE(machine.host().exists(kStateDirectory));
}

TEST(Restore, BringsEverythingBackAfterAReboot) {
  for (const auto& [name, type] :
       {std::pair{"vgpu-t4", "T4-4Q"}, {"vgpu-a10", "A10-4Q"}, {"vgpu-l40s", "L40S-8Q"}}) {
    VgpuMachine machine(name);
    ASSERT_EQ(text_of(apply(machine.host(), {{first_gpu(), {{type, 2}}}}, machine.actions())),
              "done");
    const auto before = machine.gpus();
    machine.reboot();
    EXPECT_EQ(types_of(machine.gpus()), "|");
    ASSERT_EQ(text_of(restore(machine.host(), machine.actions())), "done") << name;
    const auto after = machine.gpus();
    ASSERT_EQ(after[0].vgpus.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(spec_of(after[0].vgpus[i]), spec_of(before[0].vgpus[i])) << "the same UUIDs";
    }
  }
}

// The first GPU is not there, or its driver refuses: the second one gets its vGPUs all the same.
TEST(Restore, OfOneGpuThatFailsDoesNotKeepTheOthers) {
  VgpuMachine machine("vgpu-a10");
  const std::vector<DesiredVgpus> wanted{{first_gpu(), {{"A10-4Q", 2}}},
                                         {second_gpu(), {{"A10-8Q", 1}}}};
  ASSERT_EQ(text_of(apply(machine.host(), wanted, machine.actions())), "done");
  machine.reboot();
  machine.fault = [](std::string_view path, std::string_view) -> Status {
    if (path.find("0000:3b:") == std::string_view::npos) return {};
    return Error::sys(EIO, "write");
  };
  const auto report = restore(machine.host(), machine.actions());
  ASSERT_EQ(text_of(report), "done");
  EXPECT_EQ(types_of(machine.gpus()), "|A10-8Q");
  ASSERT_EQ(report->failed.size(), 1U);
  EXPECT_EQ(report->failed.begin()->first, first_gpu());
  EXPECT_EQ(read_intent(machine.host())->vgpus.size(), 3U) << "it still should exist";

  machine.fault = nullptr;
  const auto again = restore(machine.host(), machine.actions());
  ASSERT_EQ(text_of(again), "done");
  EXPECT_TRUE(again->failed.empty());
  EXPECT_EQ(types_of(machine.gpus()), "A10-4Q A10-4Q|A10-8Q");
  EXPECT_FALSE(interrupted(machine));
}

// An apply to both was killed; then the first GPU cannot be mended. Its part of the journal stays.
TEST(Restore, KeepsTheJournalOfAGpuThatCannotBeMended) {
  VgpuMachine machine("vgpu-a10");
  const std::vector<DesiredVgpus> small{{first_gpu(), {{"A10-4Q", 1}}},
                                        {second_gpu(), {{"A10-4Q", 1}}}};
  ASSERT_EQ(text_of(apply(machine.host(), small, machine.actions())), "done");
  const std::vector<DesiredVgpus> large{{first_gpu(), {{"A10-8Q", 1}}},
                                        {second_gpu(), {{"A10-8Q", 1}}}};
  EXPECT_THROW((void)apply(machine.host(), large, machine.actions(4, false)).ok(), KilledForTest);
  ASSERT_TRUE(interrupted(machine));
  machine.fault = [](std::string_view path, std::string_view) -> Status {
    if (path.find("0000:3b:") == std::string_view::npos) return {};
    return Error::sys(EIO, "write");
  };
  const auto report = restore(machine.host(), machine.actions());
  ASSERT_EQ(text_of(report), "done");
  EXPECT_EQ(report->failed.size(), 1U);
  EXPECT_EQ(types_of({machine.gpus().at(1)}), "A10-8Q");
  const auto journal = read_journal(machine.host());
  ASSERT_TRUE(journal.ok() && journal->has_value());
  EXPECT_THAT((*journal)->gpus, testing::ElementsAre(first_gpu()));
  machine.fault = nullptr;
  ASSERT_EQ(text_of(restore(machine.host(), machine.actions())), "done");
  EXPECT_EQ(types_of(machine.gpus()), "A10-8Q|A10-8Q");
  EXPECT_FALSE(interrupted(machine));
}

TEST(Restore, DoesNothingWhereNothingWasStored) {
  VgpuMachine machine("vgpu-t4");
  const auto report = restore(machine.host(), machine.actions());
  ASSERT_EQ(text_of(report), "done");
  EXPECT_THAT(report->steps, IsEmpty());
}

TEST(Remove, TakesAVgpuFromTheIntent) {
  VgpuMachine machine("vgpu-l40s");
  const Addition addition{.gpu = first_gpu(), .type = "L40S-8Q", .count = 2};
  ASSERT_EQ(text_of(create(machine.host(), addition, machine.actions())), "done");
  ASSERT_EQ(text_of(remove(machine.host(), {"0000:3b:00.4"}, machine.actions())), "done");
  EXPECT_EQ(types_of(machine.gpus()), "L40S-8Q|");
  machine.reboot();
  ASSERT_EQ(text_of(restore(machine.host(), machine.actions())), "done");
  EXPECT_EQ(machine.gpus()[0].vgpus[0].id(), "0000:3b:00.5");
}

TEST(Remove, OfAVgpuInUseIsRefusedBeforeAnythingIsWritten) {
  VgpuMachine machine("vgpu-t4");
  const Addition addition{.gpu = first_gpu(), .type = "T4-8Q", .count = 2};
  ASSERT_EQ(text_of(create(machine.host(), addition, machine.actions())), "done");
  const auto vgpus = machine.gpus()[0].vgpus;
  machine.hold(vgpus[1], 4711);
  const auto report = remove(machine.host(), {vgpus[0].uuid, vgpus[1].uuid}, machine.actions());
  EXPECT_THAT(text_of(report), HasSubstr("in use by process 4711"));
  EXPECT_EQ(machine.acts(), 0);
  EXPECT_EQ(machine.gpus()[0].vgpus.size(), 2U);
}

// A read that fails after the write does not mean that the vGPU is gone.
TEST(Remove, IsNotDoneIfTheKernelDoesNotSayIt) {
  VgpuMachine machine("vgpu-l40s");
  const Addition addition{.gpu = first_gpu(), .type = "L40S-8Q"};
  ASSERT_EQ(text_of(create(machine.host(), addition, machine.actions())), "done");
  const auto file = machine.vendor_path("0000:3b:00.4");
  machine.fault = [&](std::string_view path, std::string_view) -> Status {
    if (!path.ends_with("current_vgpu_type")) return {};
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);  // from now on its reads fail
    return Error::sys(EIO, "write current_vgpu_type");
  };
  const auto report = remove(machine.host(), {"0000:3b:00.4"}, machine.actions());
  EXPECT_THAT(text_of(report),
              AllOf(HasSubstr("write current_vgpu_type: Input/output error"),
                    HasSubstr("could not be undone"), HasSubstr("gantry vgpu apply --restore")));
  EXPECT_TRUE(interrupted(machine));
}

// The process opened the node between our look and our write.
TEST(Apply, PutsBackWhatItRemovedWhenTheKernelRefuses) {
  for (const auto& [name, small, large] : {std::tuple{"vgpu-t4", "T4-4Q", "T4-8Q"},
                                           {"vgpu-a10", "A10-4Q", "A10-8Q"},
                                           {"vgpu-l40s", "L40S-8Q", "L40S-16Q"}}) {
    VgpuMachine machine(name);
    ASSERT_EQ(text_of(apply(machine.host(), {{first_gpu(), {{small, 3}}}}, machine.actions())),
              "done");
    const auto before = machine.gpus()[0].vgpus;
    int removals = 0;
    machine.fault = [&](std::string_view path, std::string_view text) -> Status {
      const bool removal = path.ends_with("/remove") || text == "0";
      if (removal && ++removals == 3) return Error::sys(EBUSY, "write");
      return {};
    };
    const auto report = apply(machine.host(), {{first_gpu(), {{large, 1}}}}, machine.actions());
    EXPECT_THAT(text_of(report), AllOf(HasSubstr("all is as it was before"),
                                       HasSubstr("a virtual machine uses it")));
    machine.fault = nullptr;
    const auto after = machine.gpus()[0].vgpus;
    ASSERT_EQ(after.size(), 3U) << name;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(spec_of(after[i]), spec_of(before[i]));
    EXPECT_EQ(read_intent(machine.host())->vgpus.size(), 3U);
    EXPECT_FALSE(interrupted(machine));
  }
}

TEST(Apply, ThatCannotBeUndoneSaysHowToMendIt) {
  VgpuMachine machine("vgpu-a10");
  ASSERT_EQ(text_of(apply(machine.host(), {{first_gpu(), {{"A10-4Q", 2}}}}, machine.actions())),
            "done");
  machine.fault = [&](std::string_view path, std::string_view) -> Status {
    return path.ends_with("/create") ? Status(Error::sys(EIO, "write")) : Status();
  };
  const auto report = apply(machine.host(), {{first_gpu(), {{"A10-8Q", 1}}}}, machine.actions());
  EXPECT_THAT(text_of(report), AllOf(HasSubstr("could not be undone"), HasSubstr("nvidia-vgpud"),
                                     HasSubstr("gantry vgpu apply --restore")));
  EXPECT_TRUE(interrupted(machine));
  machine.fault = nullptr;
  const auto refused =
      create(machine.host(), {.gpu = first_gpu(), .type = "A10-4Q"}, machine.actions());
  EXPECT_THAT(text_of(refused), HasSubstr("was interrupted"));
  ASSERT_EQ(text_of(restore(machine.host(), machine.actions())), "done");
  EXPECT_EQ(types_of(machine.gpus()), "A10-8Q|");
  EXPECT_FALSE(interrupted(machine));
}

TEST(Apply, DoesNotRemoveTheVgpuOfAnotherProgram) {
  VgpuMachine machine("vgpu-l40s");
  machine.fault = [&](std::string_view path, std::string_view text) -> Status {
    return path.ends_with("current_vgpu_type") && text != "0" ? Status(Error::sys(EBUSY, "write"))
                                                              : Status();
  };
  const auto report = apply(machine.host(), {{first_gpu(), {{"L40S-8Q", 1}}}}, machine.actions());
  EXPECT_THAT(text_of(report), HasSubstr("already has a vGPU"));
  EXPECT_THAT(machine.writes, Not(::testing::Contains(HasSubstr("current_vgpu_type 0"))));
}

TEST(Apply, DoesNotRemoveAnotherTypeFromItsVirtualFunction) {
  VgpuMachine machine("vgpu-l40s");
  auto actions = machine.actions();
  const auto write = actions.write;
  actions.write = [&](std::string_view path, std::string_view text) -> Status {
    if (!path.ends_with("current_vgpu_type") || text != "1152") return write(path, text);
    EXPECT_TRUE(write(path, "1153").ok());  // another program was faster
    return Error::sys(EINVAL, "write");
  };
  ASSERT_FALSE(apply(machine.host(), {{first_gpu(), {{"L40S-8Q", 1}}}}, actions).ok());
  EXPECT_EQ(machine.gpus()[0].vgpus.size(), 1U);
  EXPECT_EQ(machine.gpus()[0].vgpus[0].type_id, "1153");
}

// The first A100 has the GPU instances 1g.5gb, 1g.5gb and 2g.10gb, the second none.
class MigBacked : public ::testing::Test {
 protected:
  std::string create_on(const model::PciAddress& gpu, const char* type, unsigned count) {
    return text_of(
        create(machine_.host(), {.gpu = gpu, .type = type, .count = count}, machine_.actions()));
  }
  std::string create_on_first(const char* type, unsigned count = 1) {
    return create_on(first_gpu(), type, count);
  }

  VgpuMachine machine_{"vgpu-a100"};
};

TEST_F(MigBacked, TakeAnInstanceEach) {
  ASSERT_EQ(create_on_first("A100-1-5C", 2), "done");
  ASSERT_EQ(create_on_first("A100-2-10C"), "done");
  EXPECT_EQ(types_of(machine_.gpus()), "A100-1-5C A100-1-5C A100-2-10C|");
  EXPECT_THAT(create_on_first("A100-1-5C"), HasSubstr("3 GPU instances, but 4 MIG-backed vGPUs"));
  std::vector<std::string> ids;
  const auto gpus = machine_.gpus();
  for (const auto& vgpu : gpus[0].vgpus) ids.push_back(vgpu.id());
  ASSERT_EQ(text_of(remove(machine_.host(), ids, machine_.actions())), "done");
  EXPECT_EQ(types_of(machine_.gpus()), "|");
  EXPECT_EQ(create_on_first("A100-2-10C"), "done") << "the instance is free again";
}

TEST_F(MigBacked, NeedAnInstanceOfTheirProfile) {
  EXPECT_THAT(create_on_first("A100-3-20C"),
              AllOf(HasSubstr("needs MIG mode"), HasSubstr("-cgi 3g.20gb")));
  EXPECT_THAT(create_on(second_gpu(), "A100-1-5C", 1),
              AllOf(HasSubstr("needs MIG mode"), HasSubstr("-i 0000:af:00.0 -mig 1")));
  // The kernel does not show the profile of an instance: it refuses the third, and the two go.
  EXPECT_THAT(create_on_first("A100-1-5C", 3), HasSubstr("No space left"));
  EXPECT_EQ(types_of(machine_.gpus()), "|");
  EXPECT_FALSE(interrupted(machine_));
}

TEST_F(MigBacked, AreNotBesideTimeSlicedOnes) {
  EXPECT_THAT(create_on_first("A100-4C"), HasSubstr("A100-4C is a time-sliced type"));
  ASSERT_EQ(create_on_first("A100-1-5C"), "done");
  EXPECT_THAT(create_on_first("A100-4C"), HasSubstr("at the same time"));
  EXPECT_EQ(create_on(second_gpu(), "A100-4C", 10), "done");
  EXPECT_EQ(types_of({machine_.gpus()[0]}), "A100-1-5C");
}

TEST_F(MigBacked, AreRestoredAfterAReboot) {
  ASSERT_EQ(create_on_first("A100-1-5C", 2), "done");
  machine_.reboot();
  ASSERT_EQ(types_of(machine_.gpus()), "|");
  ASSERT_EQ(text_of(restore(machine_.host(), machine_.actions())), "done");
  EXPECT_EQ(types_of(machine_.gpus()), "A100-1-5C A100-1-5C|");
}

TEST(Apply, TellsHowManyVirtualFunctionsAppeared) {
  VgpuMachine machine("vgpu-a10");
  auto actions = machine.actions();
  actions.enable_vfs = [](const model::PciAddress&, unsigned) { return Status(); };  // as 17.2
  const auto report = apply(machine.host(), {{first_gpu(), {{"A10-4Q", 1}}}}, actions);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), Errc::Timeout);
  EXPECT_THAT(report.error().text(), HasSubstr("0 of 16 virtual functions of 0000:3b:00.0"));
}

TEST(Apply, AfterAWriteThatNeverReturnsIsUndone) {
  VgpuMachine machine("vgpu-t4");
  ASSERT_EQ(text_of(apply(machine.host(), {{first_gpu(), {{"T4-4Q", 1}}}}, machine.actions())),
            "done");
  machine.fault = [](std::string_view path, std::string_view) -> Status {
    return path.ends_with("/remove") ? Status(Error(Errc::Timeout, "the kernel did not return"))
                                     : Status();
  };
  const auto report = apply(machine.host(), {{first_gpu(), {{"T4-8Q", 1}}}}, machine.actions());
  EXPECT_THAT(text_of(report), HasSubstr("the kernel waits for the virtual machine"));
  EXPECT_EQ(types_of(machine.gpus()), "T4-4Q|");
  EXPECT_FALSE(interrupted(machine));
}

TEST(Apply, ActsOnlyIfThePlanCouldBeStored) {
  VgpuMachine machine("vgpu-t4");
  auto actions = machine.actions();
  actions.save = [](std::string_view, std::string_view) { return Error::sys(ENOSPC, "write"); };
  const auto report = apply(machine.host(), {{first_gpu(), {{"T4-4Q", 1}}}}, actions);
  EXPECT_THAT(text_of(report), AllOf(HasSubstr("storing the plan"), HasSubstr("No space left")));
  EXPECT_THAT(machine.writes, IsEmpty());
}

TEST(Change, IsAloneOnTheMachine) {
  VgpuMachine machine("vgpu-t4");
  const auto lock = ChangeLock::take(machine.host());
  ASSERT_TRUE(lock.ok());
  const auto report = apply(machine.host(), {{first_gpu(), {}}}, machine.actions());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), Errc::Busy);
  EXPECT_THAT(report.error().text(), HasSubstr("another gantry"));
}

TEST(State, ThatIsDamagedIsNotGuessed) {
  VgpuMachine machine("vgpu-t4");
  ASSERT_EQ(text_of(apply(machine.host(), {{first_gpu(), {{"T4-4Q", 1}}}}, machine.actions())),
            "done");
  std::ofstream(machine.path(kIntentPath)) << "{\"version\":1,\"vgpus\":[{\"gpu\":1}]}";
  const auto report = restore(machine.host(), machine.actions());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), Errc::Corrupt);
  EXPECT_THAT(report.error().text(), AllOf(HasSubstr("intent.json"), HasSubstr("sudo rm")));
  std::ofstream(machine.path(kIntentPath)) << "{\"version\":2,\"vgpus\":[]}";
  EXPECT_THAT(text_of(restore(machine.host(), machine.actions())),
              AllOf(HasSubstr("newer gantry"), Not(HasSubstr("rm "))));
}

TEST(State, IsReadAsItWasWritten) {
  const Intent intent{.vgpus = {{first_gpu(), second_gpu(), "A10-4Q", "nvidia-592",
                                 "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"},
                                {first_gpu(), first_gpu(), "L40S-8Q", "1152", ""}}};
  EXPECT_EQ(*parse_intent(to_json(intent)), intent);
  const Journal journal{.command = "apply",
                        .gpus = {first_gpu()},
                        .before = intent.vgpus,
                        .after = {intent.vgpus[0]},
                        .steps = {"remove \"x\""}};
  EXPECT_EQ(*parse_journal(to_json(journal)), journal);
  const KnownTypes types{{"10de:26b9", {{"1150", "NVIDIA L40S-4Q"}}}};
  EXPECT_EQ(*parse_known_types(to_json(types)), types);
  EXPECT_FALSE(parse_intent("{\"version\":1}").ok());
  EXPECT_FALSE(parse_journal("[]").ok());
}

}  // namespace
}  // namespace gantry::vgpu
