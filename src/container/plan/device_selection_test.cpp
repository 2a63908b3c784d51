// SPDX-License-Identifier: Apache-2.0
#include "container/plan/device_selection.hpp"

#include "container/plan/machine_for_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> names(const Selection& selection) {
  std::vector<std::string> found;
  for (const auto& [gpu, mig] : selection.devices) {
    found.push_back(mig == nullptr ? fmt::to_string(gpu->index)
                                   : fmt::format("{}:{}", gpu->index, mig->index));
  }
  return found;
}

Result<std::vector<std::string>> chosen(const model::Inventory& machine,
                                        const std::vector<std::string>& asked) {
  GANTRY_TRY(const auto selection, select(machine, asked));
  return names(selection);
}

TEST(Select, AllIsWhatCudaCanUse) {
  const auto machine = machine_for_test();
  EXPECT_THAT(*chosen(machine, {"all"}), ElementsAre("0", "1", "2:0", "2:1"));
}

TEST(Select, EveryFormOfNameFindsItsDevice) {
  const auto machine = machine_for_test();
  EXPECT_THAT(*chosen(machine, {"1"}), ElementsAre("1"));
  EXPECT_THAT(*chosen(machine, {"gpu1"}), ElementsAre("1"));
  EXPECT_THAT(*chosen(machine, {"mig2:1"}), ElementsAre("2:1"));
  EXPECT_FALSE(chosen(machine, {"gpu2:1"}).ok());
  EXPECT_FALSE(chosen(machine, {"mig2"}).ok());
  EXPECT_THAT(*chosen(machine, {"gpu-00000001-AAAA-bbbb-cccc-dddddddddddd"}), ElementsAre("1"));
  EXPECT_THAT(*chosen(machine, {"00000000:3C:00.0"}), ElementsAre("1"));
  EXPECT_THAT(*chosen(machine, {"0000:3c:00.0"}), ElementsAre("1"));
  EXPECT_THAT(*chosen(machine, {"2:1"}), ElementsAre("2:1"));
  EXPECT_THAT(*chosen(machine, {"MIG-00000001-1111-2222-3333-444444444444"}), ElementsAre("2:1"));
  EXPECT_THAT(*chosen(machine, {"MIG-GPU-00000002-aaaa-bbbb-cccc-dddddddddddd/8/0"}),
              ElementsAre("2:1"));
}

TEST(Select, AnEmptyNameIsNotAGpuWithoutAKnownUuid) {
  auto machine = machine_for_test();
  machine.gpus[1].uuid.text = "";
  EXPECT_FALSE(chosen(machine, {""}).ok());
  EXPECT_THAT(*chosen(machine, {"1"}), ElementsAre("1"));
}

TEST(Select, TheOrderIsTheMachinesAndNothingIsTwice) {
  const auto machine = machine_for_test();
  EXPECT_THAT(*chosen(machine, {"2:1", "1", "0", "0000:3c:00.0"}), ElementsAre("0", "1", "2:1"));
}

TEST(Select, TheFirstOfAllAndNoneDecides) {
  const auto machine = machine_for_test();
  EXPECT_THAT(*chosen(machine, {"0", "all", "none"}), SizeIs(4));
  EXPECT_TRUE(select(machine, std::vector<std::string>{"none", "all"})->none);
  EXPECT_THAT(*chosen(machine, {"none"}), SizeIs(0));
}

TEST(Select, AGpuInMigModeIsGivenWholeWhenAskedForByName) {
  const auto machine = machine_for_test();
  const auto selection = select(machine, std::vector<std::string>{"2"});
  ASSERT_TRUE(selection.ok());
  EXPECT_THAT(names(*selection), ElementsAre("2"));
  EXPECT_THAT(selection->notes, ElementsAre(HasSubstr("the container gets all its instances")));
}

TEST(Select, AGpuInMigModeWithoutInstancesIsNoPartOfAll) {
  auto machine = machine_for_test();
  machine.gpus[2].mig.instances.clear();
  const auto selection = select(machine, std::vector<std::string>{"all"});
  ASSERT_TRUE(selection.ok());
  EXPECT_THAT(names(*selection), ElementsAre("0", "1"));
  EXPECT_THAT(selection->notes, ElementsAre(HasSubstr("nvidia-smi mig -i 2 -cgi")));
}

TEST(Select, AWrongNameIsAnsweredWithWhatThereIs) {
  const auto machine = machine_for_test();
  for (const auto* id : {"7", "GPU-none", "0:0", "2:9", "MIG-GPU-x/1/0", "0000:ff:00.0", "-1", "",
                         "18446744073709551616", "0:", ":", "1:2:3"}) {
    const auto wrong = chosen(machine, {id});
    ASSERT_FALSE(wrong.ok()) << id;
    EXPECT_EQ(wrong.error().code(), Errc::NotFound) << id;
    EXPECT_THAT(wrong.error().text(),
                AllOf(HasSubstr("there is no"), HasSubstr("0 (GPU-00000000-aaaa"),
                      HasSubstr("2:1 (MIG-00000001-1111")))
        << id;
  }
}

TEST(Select, AnInstanceOfAGpuWithoutMigSaysSo) {
  const auto wrong = chosen(machine_for_test(), {"0:1"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr("GPU 0 is not in MIG mode"));
}

TEST(Select, AListOfManyIsCut) {
  auto machine = machine_for_test();
  for (int i = 3; i < 40; ++i) machine.gpus.push_back(gpu_for_test(i));
  EXPECT_THAT(describe_devices(machine), HasSubstr("and 26 more: `gantry info`"));
}

TEST(Select, ALostGpuIsRefusedByNameAndLeftOutOfAll) {
  auto machine = machine_for_test();
  machine.gpus[1].health = {.state = model::HealthState::Lost, .reasons = {"fell off the bus"}};
  const auto refused = chosen(machine, {"1"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Unsupported);
  EXPECT_THAT(refused.error().text(), HasSubstr("is lost: fell off the bus; run `gantry doctor`"));
  const auto rest = select(machine, std::vector<std::string>{"all"});
  EXPECT_THAT(names(*rest), ElementsAre("0", "2:0", "2:1"));
  EXPECT_THAT(rest->notes, ElementsAre(HasSubstr("left out of `all`")));
}

TEST(Select, AllOnAMachineWithoutGpusIsAnError) {
  const auto nothing = chosen(model::Inventory{}, {"all"});
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code(), Errc::NotFound);
}

TEST(Select, ListsWithoutEndAreRefused) {
  const auto machine = machine_for_test();
  EXPECT_EQ(select(machine, std::vector<std::string>(5000, "0")).error().code(), Errc::Invalid);
}

}  // namespace
}  // namespace gantry::plan
