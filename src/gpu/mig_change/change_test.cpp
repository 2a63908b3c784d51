// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/change.hpp"

#include "gpu/mig_change/fake_card_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::mig_change {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* kHalves = "3g.71gb at 0, 3g.71gb at 4";
constexpr const char* kMixed = "3g.71gb at 0, 2g.35gb at 4, 1g.18gb at 6";

ChangeRequest request(const Layout& layout) {
  return {.gpu = FakeCard::address(),
          .what = "gantry mig apply " + describe(layout),
          .planner = [layout](const mig::MigGpu&) -> Result<Layout> { return layout; }};
}

Result<ChangeReport> change(FakeCard& card, const Layout& layout) {
  return apply(card.host(), request(layout), card.actions());
}

bool is_unfinished(const FakeCard& card) {
  return read_state(card.host(), FakeCard::address())->change.has_value();
}

std::string stored(const FakeCard& card) {
  const auto state = *read_state(card.host(), FakeCard::address());
  return state.stored ? describe(*state.stored) : "nothing";
}

std::unique_ptr<FakeCard> with_halves() {
  auto card = std::make_unique<FakeCard>();
  EXPECT_TRUE(change(*card, halves()).ok());
  EXPECT_EQ(card->layout(), kHalves);
  return card;
}

TEST(MigChange, TurnsMigOnAndCreatesInstances) {
  FakeCard card;
  const auto report = change(card, halves());
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->steps.size(), 5U);
  EXPECT_EQ(card.layout(), kHalves);
  EXPECT_EQ(stored(card), kHalves);
  EXPECT_FALSE(is_unfinished(card));
}

TEST(MigChange, KeepsTheInstancesThatAreWanted) {
  const auto card = with_halves();
  const auto seen = preview(card->host(), request(mixed()), card->actions());
  EXPECT_EQ(kept_instances(card->gpu(), seen->steps), (std::vector<model::GpuUuid>{{"MIG-1/0"}}));
  EXPECT_EQ(going_instances(seen->steps), (std::vector<GoingInstance>{{{"MIG-2/0"}, 2, 0}}));
  card->fault = [](std::string_view) { return Status{}; };
  const auto report = change(*card, mixed());
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(card->layout(), kMixed);
  EXPECT_TRUE(card->uuids().starts_with("MIG-1/0 "));
}

TEST(MigChange, ThatIsDoneAlreadyDoesNothing) {
  const auto card = with_halves();
  const auto report = change(*card, halves());
  EXPECT_TRUE(report->steps.empty());
  EXPECT_EQ(card->acts(), 0);
}

TEST(MigChange, TurnsMigOff) {
  const auto card = with_halves();
  ASSERT_TRUE(change(*card, off()).ok());
  EXPECT_EQ(card->layout(), "no MIG");
  EXPECT_EQ(stored(*card), "no MIG");
}

TEST(MigChange, OfTheModeAloneKeepsTheInstances) {
  const auto card = with_halves();
  auto wanted = request({.enabled = true});
  wanted.mode_only = true;
  EXPECT_TRUE(apply(card->host(), wanted, card->actions())->steps.empty());
  EXPECT_EQ(card->layout(), kHalves);
}

TEST(MigChange, AsksForTheProfilesAfterTheModeIsOn) {
  FakeCard card;
  card.tells_profiles_only_with_mig = true;
  ASSERT_TRUE(change(card, mixed()).ok());
  EXPECT_EQ(card.layout(), kMixed);
}

TEST(MigChange, PlansAgainWhenTheProfilesAreKnown) {
  FakeCard card;
  card.tells_profiles_only_with_mig = true;
  auto wanted = request(mixed());
  wanted.planner = [](const mig::MigGpu& gpu) -> Result<Layout> {
    return gpu.profiles.empty() ? Layout{.enabled = true} : mixed();
  };
  const auto report = apply(card.host(), wanted, card.actions());
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(card.layout(), kMixed);
  EXPECT_EQ(stored(card), kMixed);
}

TEST(MigChange, CreatesSeveralComputeInstances) {
  FakeCard card;
  const Layout wanted{.enabled = true,
                      .instances = {{.profile = "3g.71gb",
                                     .place = {0, 4},
                                     .compute = {{"1c.3g.71gb", {}}, {"1c.3g.71gb", {}}}}}};
  ASSERT_TRUE(change(card, wanted).ok());
  EXPECT_EQ(card.layout(), "3g.71gb at 0 (1c.3g.71gb 1c.3g.71gb)");
  const auto report = change(
      card,
      {.enabled = true,
       .instances = {{.profile = "3g.71gb", .place = {0, 4}, .compute = {{"1c.3g.71gb", {}}}}}});
  EXPECT_EQ(report->steps.size(), 1U);
  EXPECT_EQ(card.uuids(), "MIG-1/0");
}

TEST(MigChange, ThatFailsIsTakenBackWithTheSameUuids) {
  for (const auto* failing :
       {"destroy-gpu-instance", "create-gpu-instance", "create-compute-instance"}) {
    const auto card = with_halves();
    const auto before = card->uuids();
    int calls = 0;
    card->fault = [&](std::string_view act) -> Status {
      if (act == failing && ++calls == 1) return Error(Errc::Busy, "NVML_ERROR_IN_USE");
      return {};
    };
    const auto report = change(*card, mixed());
    ASSERT_FALSE(report.ok()) << failing;
    EXPECT_EQ(report.error().code(), Errc::Denied);
    EXPECT_THAT(report.error().text(), HasSubstr("all is as it was before"));
    EXPECT_THAT(report.error().text(), HasSubstr("NVML_ERROR_IN_USE"));
    EXPECT_EQ(card->layout(), kHalves) << failing;
    EXPECT_EQ(card->uuids(), before);
    EXPECT_FALSE(is_unfinished(*card));
    EXPECT_EQ(stored(*card), kHalves);
  }
}

TEST(MigChange, WhoseWayBackFailsStaysStored) {
  const auto card = with_halves();
  card->fault = [](std::string_view act) -> Status {
    if (act == "create-gpu-instance") return Error(Errc::Busy, "NVML_ERROR_IN_USE");
    return {};
  };
  const auto report = change(*card, mixed());
  EXPECT_EQ(report.error().code(), Errc::Internal);
  EXPECT_THAT(report.error().text(), HasSubstr("the way back failed too"));
  EXPECT_THAT(report.error().remedy(), HasSubstr("gantry mig restore --former --gpu 0000:3b:00.0"));
  EXPECT_TRUE(is_unfinished(*card));
  card->fault = nullptr;
  ASSERT_TRUE(
      to_former(card->host(), FakeCard::address(), "gantry mig restore", card->actions()).ok());
  EXPECT_EQ(card->layout(), kHalves);
  EXPECT_FALSE(is_unfinished(*card));
}

TEST(MigChange, OfADriverThatHangsIsATimeoutAndTouchesNothingMore) {
  const auto card = with_halves();
  int acts_after = 0;
  bool hung = false;
  card->fault = [&](std::string_view act) -> Status {
    if (hung) ++acts_after;
    if (act != "destroy-gpu-instance") return {};
    hung = true;
    return Error(Errc::Timeout, "NVML did not answer");
  };
  const auto report = change(*card, mixed());
  EXPECT_EQ(report.error().code(), Errc::Timeout);
  EXPECT_EQ(acts_after, 0);
  EXPECT_TRUE(is_unfinished(*card));
}

TEST(MigChange, ThatCannotBeStoredDoesNothing) {
  const auto card = with_halves();
  card->fault = [](std::string_view act) -> Status {
    if (act == "save") return Error(Errc::Denied, "no space");
    return {};
  };
  const auto report = change(*card, mixed());
  EXPECT_EQ(report.error().code(), Errc::Busy);
  EXPECT_EQ(card->layout(), kHalves);
}

TEST(MigChange, NamesTheProfilesThatTheGpuHas) {
  FakeCard card;
  const auto report =
      change(card, {.enabled = true, .instances = {{.profile = "4g.71gb", .place = {0, 4}}}});
  EXPECT_THAT(report.error().text(), HasSubstr("has no profile 4g.71gb; it has 1g.18gb"));
  EXPECT_EQ(card.layout(), "no MIG");
}

// A100: the mode needs a reset.
TEST(PendingMode, IsReportedAndTheLayoutIsStored) {
  FakeCard card(ModeChange::NeedsReset);
  const auto report = change(card, halves());
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->pending, "a reset is required");
  EXPECT_EQ(card.layout(), "no MIG");
  EXPECT_EQ(stored(card), kHalves);
  card.reset();
  ASSERT_TRUE(restore(card.host(), FakeCard::address(), "gantry mig restore", card.actions()).ok());
  EXPECT_EQ(card.layout(), kHalves);
}

TEST(PendingMode, ComesIntoEffectWithAReset) {
  FakeCard card(ModeChange::NeedsReset);
  card.works_with_reset = true;
  const auto report = change(card, halves());
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->pending, "");
  EXPECT_EQ(card.layout(), kHalves);
}

TEST(MigRestore, CreatesTheStoredLayoutAfterAReboot) {
  const auto card = with_halves();
  const auto before = card->uuids();
  card->reboot();
  ASSERT_TRUE(
      restore(card->host(), FakeCard::address(), "gantry mig restore", card->actions()).ok());
  EXPECT_EQ(card->layout(), kHalves);
  EXPECT_EQ(card->uuids(), before);
}

TEST(MigRestore, LeavesAGpuAloneThatIsNotManaged) {
  FakeCard card;
  const auto report =
      restore(card.host(), FakeCard::address(), "gantry mig restore", card.actions());
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_TRUE(report->steps.empty());
}

TEST(MigRestore, ToTheFormerLayoutNeedsAnInterruptedChange) {
  const auto card = with_halves();
  const auto back =
      to_former(card->host(), FakeCard::address(), "gantry mig restore", card->actions());
  EXPECT_EQ(back.error().code(), Errc::NotFound);
}

// kill -9 before and after every act of a change.
class MigKill : public ::testing::TestWithParam<bool> {
 protected:
  static std::unique_ptr<FakeCard> fresh() {
    auto card = std::make_unique<FakeCard>();
    EXPECT_TRUE(change(*card, from()).ok());
    return card;
  }
  static Layout from() { return GetParam() ? off() : halves(); }

  template <class Check>
  static void at_every_act(const Check& check) {
    const auto whole = fresh();
    EXPECT_TRUE(change(*whole, mixed()).ok());
    const int acts = whole->acts();
    ASSERT_GT(acts, 5);
    for (int at = 1; at <= acts; ++at) {
      for (const bool before : {true, false}) {
        SCOPED_TRACE(fmt::format("killed {} act {} of {}", before ? "before" : "after", at, acts));
        const auto card = fresh();
        EXPECT_THROW((void)apply(card->host(), request(mixed()), card->actions(at, before)),
                     KilledForTest);
        check(*card);
        EXPECT_FALSE(is_unfinished(*card));
      }
    }
  }
};

TEST_P(MigKill, ThenTheSameCommandEndsInTheNewLayout) {
  at_every_act([](FakeCard& card) {
    const auto again = change(card, mixed());
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(card.layout(), kMixed);
    EXPECT_EQ(stored(card), kMixed);
  });
}

TEST_P(MigKill, ThenTheWayBackEndsInTheFormerLayout) {
  at_every_act([](FakeCard& card) {
    const bool begun = is_unfinished(card);
    const auto uuids = card.uuids();
    const auto back =
        to_former(card.host(), FakeCard::address(), "gantry mig restore", card.actions());
    // Before the first save nothing was done, and after the last one all is.
    EXPECT_EQ(back.ok(), begun);
    EXPECT_THAT(card.layout(), begun ? describe(from()) : card.layout());
    EXPECT_THAT(card.layout(), AnyOf(describe(from()), kMixed));
  });
}

TEST_P(MigKill, ThenRestoreEndsInOneOfTheTwo) {
  at_every_act([](FakeCard& card) {
    const auto again =
        restore(card.host(), FakeCard::address(), "gantry mig restore", card.actions());
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_THAT(card.layout(), AnyOf(describe(from()), kMixed));
  });
}

TEST_P(MigKill, ThenARebootAndRestoreEndInOneOfTheTwo) {
  at_every_act([](FakeCard& card) {
    card.reboot();
    const auto again =
        restore(card.host(), FakeCard::address(), "gantry mig restore", card.actions());
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_THAT(card.layout(), AnyOf(describe(from()), kMixed));
  });
}

INSTANTIATE_TEST_SUITE_P(From, MigKill, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "NoMig" : "Halves"; });

}  // namespace
}  // namespace gantry::mig_change
