// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/share.hpp"

#include "base/core/bytes.hpp"

#include <gmock/gmock.h>

namespace gantry::policy {
namespace {

using testing::HasSubstr;

Share made(const ShareText& text) {
  auto share = parse_share(text);
  EXPECT_TRUE(share.ok()) << share.error().text();
  return *std::move(share);
}

std::string refused(const ShareText& text) {
  const auto share = parse_share(text);
  if (share.ok()) return "accepted";
  EXPECT_EQ(share.error().code(), Errc::Invalid);
  return share.error().text();
}

TEST(MemoryLimit, IsBytesOrUnitsOrPerCent) {
  EXPECT_EQ(parse_memory_limit("1048576")->bytes, 1048576);
  EXPECT_EQ(parse_memory_limit("10GiB")->bytes, 10 * kGiB);
  EXPECT_EQ(parse_memory_limit("10Gi")->bytes, 10 * kGiB);
  EXPECT_EQ(parse_memory_limit("10G")->bytes, 10 * kGiB);
  EXPECT_EQ(parse_memory_limit("10g")->bytes, 10 * kGiB);
  EXPECT_EQ(parse_memory_limit("10GB")->bytes, 10'000'000'000);
  EXPECT_EQ(parse_memory_limit("1.5 GiB")->bytes, 3 * kGiB / 2);
  EXPECT_EQ(parse_memory_limit("512m")->bytes, kGiB / 2);
  EXPECT_EQ(parse_memory_limit("50%")->on(80 * kGiB), 40 * kGiB);
}

TEST(MemoryLimit, PerCentOfACardIsWholeMebibytes) {
  EXPECT_EQ(parse_memory_limit("33%")->on(10 * kGiB), 3379ull << 20);
}

TEST(MemoryLimit, WhatIsNoAmountIsAnErrorWithAnExample) {
  for (const auto* text : {"", "GiB", "-1", "1e9", "10 apples", "0", "0%", "101%", "1.5.5G", "1.G",
                           ".5G", "99999999999999999999", "9999999TiB", "1.0000000001G", "12.5%"}) {
    const auto memory = parse_memory_limit(text);
    ASSERT_FALSE(memory.ok()) << text;
    EXPECT_EQ(memory.error().code(), Errc::Invalid);
    EXPECT_THAT(memory.error().text(), HasSubstr("10GiB")) << text;
  }
}

TEST(MemoryLimit, AnErrorNamesThePartThatIsWrong) {
  EXPECT_THAT(parse_memory_limit("10QB").error().text(), HasSubstr("no such unit"));
  EXPECT_THAT(parse_memory_limit("lots").error().text(), HasSubstr("does not begin with a number"));
  EXPECT_THAT(parse_memory_limit("-5GiB").error().text(),
              HasSubstr("does not begin with a number"));
}

TEST(MemoryLimit, TextIsTheShortestThatSaysTheSame) {
  for (const auto* text :
       {"10GiB", "1536MiB", "50%", "1000000001", "2TiB", "3KiB", "10GB", "1500MB"}) {
    EXPECT_EQ(to_string(*parse_memory_limit(text)), text);
  }
}

TEST(Share, WithoutWordsHasNoLimits) {
  const auto share = made({.name = "a"});
  EXPECT_FALSE(share.memory);
  EXPECT_FALSE(share.time_limited);
  EXPECT_TRUE(share.gpus.empty());
  EXPECT_EQ(share.unattached, UnattachedPolicy::Refuse);
  EXPECT_EQ(share.context_memory, ContextMemory::Counted);
}

TEST(Share, APerCentIsACapUnlessSaidOtherwise) {
  const auto capped = made({.name = "a", .compute = "30%"});
  EXPECT_EQ(capped.time_policy.percent, 30);
  EXPECT_EQ(capped.time_policy.excess, Excess::Refused);
  const auto free = made({.name = "a", .compute = "30", .excess = "work-conserving"});
  EXPECT_EQ(free.time_policy.excess, Excess::Allowed);
}

TEST(Share, AWeightIsWorkConserving) {
  const auto share = made({.name = "a", .weight = "200", .priority = "high"});
  EXPECT_TRUE(share.time_limited);
  EXPECT_EQ(share.time_policy,
            (TimePolicy{.weight = 200, .excess = Excess::Allowed, .priority = Priority::High}));
}

TEST(Share, ErrorsSayWhatWhyAndHowElse) {
  EXPECT_THAT(refused({.name = "../x"}), HasSubstr("team-a"));
  EXPECT_THAT(refused({.name = ""}), HasSubstr("team-a"));
  EXPECT_THAT(refused({.name = std::string(64, 'a')}), HasSubstr("at most 63"));
  EXPECT_THAT(refused({.name = "a", .gpus = "0"}), HasSubstr("GPU-"));
  EXPECT_THAT(refused({.name = "a", .gpus = "GPU-1,GPU-1"}), HasSubstr("twice"));
  EXPECT_THAT(refused({.name = "a", .gpus = ","}), HasSubstr("UUID"));
  EXPECT_THAT(refused({.name = "a", .compute = "130%"}), HasSubstr("30%"));
  EXPECT_THAT(refused({.name = "a", .compute = "0"}), HasSubstr("from 1 to 100"));
  EXPECT_THAT(refused({.name = "a", .compute = "30%", .weight = "1"}), HasSubstr("use only one"));
  EXPECT_THAT(refused({.name = "a", .weight = "0"}), HasSubstr("from 1 to"));
  EXPECT_THAT(refused({.name = "a", .excess = "cap"}), HasSubstr("--compute 30% --hard"));
  EXPECT_THAT(refused({.name = "a", .on_violation = "kill"}), HasSubstr("policy `kill`"));
  EXPECT_THAT(refused({.name = "a", .priority = "urgent"}), HasSubstr("low, normal, high"));
  EXPECT_THAT(refused({.name = "a", .backend = "vgpu"}), HasSubstr("time-slicing"));
}

TEST(Share, ChangesOnlyWhatIsSaid) {
  const auto before =
      made({.name = "a", .memory = "10GiB", .compute = "30%", .excess = "work-conserving"});
  const auto more = apply_changes(before, {.memory = MemoryLimit{.bytes = 20 * kGiB}});
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->memory->bytes, 20 * kGiB);
  EXPECT_EQ(more->time_policy, before.time_policy);

  const auto faster = apply_changes(before, {.percent = 60});
  EXPECT_EQ(faster->time_policy.percent, 60);
  EXPECT_EQ(faster->time_policy.excess, Excess::Allowed);

  const auto by_weight = apply_changes(before, {.weight = 300});
  EXPECT_EQ(by_weight->time_policy, (TimePolicy{.weight = 300}));

  const auto without = apply_changes(before, {.memory = MemoryLimit{}, .percent = 0});
  EXPECT_FALSE(without->memory);
  EXPECT_FALSE(without->time_limited);
}

TEST(Share, ChangesOfFlagsAreOnlyThoseThatAreGiven) {
  EXPECT_EQ(*parse_changes({}), ShareChanges{});
  EXPECT_EQ(
      *parse_changes({.gpus = "any", .memory = "none", .compute = "none"}),
      (ShareChanges{.gpus = std::vector<model::GpuUuid>{}, .memory = MemoryLimit{}, .percent = 0}));
  EXPECT_EQ(
      *parse_changes({.weight = "5", .excess = "cap", .on_violation = "stop"}),
      (ShareChanges{.weight = 5, .excess = Excess::Refused, .violation = ViolationPolicy::Stop}));
  EXPECT_THAT(parse_changes({.context_memory = "all"}).error().text(),
              HasSubstr("context-memory `all`"));
}

TEST(Share, IsTheSameAfterJson) {
  for (const auto& text :
       {ShareText{.name = "a"},
        ShareText{.name = "b", .gpus = "GPU-1,MIG-2", .memory = "50%", .compute = "30%"},
        ShareText{.name = "c", .memory = "10GiB", .weight = "5", .priority = "low"},
        ShareText{.name = "d",
        .compute = "1",
        .excess = "work-conserving",
        .on_violation = "stop",
        .unattached = "pass",
        .context_memory = "free",
        .backend = "mps"}}) {
    const auto share = made(text);
    const auto again = share_from_json(to_json(share));
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(*again, share);
    EXPECT_EQ(*apply_changes({.name = share.name}, to_changes(share)), share);
  }
}

TEST(Share, JsonMayHaveNumbersAndMustHaveNothingUnknown) {
  const auto share = share_from_json(R"({"name":"a","memory":1048576,"weight":200})");
  ASSERT_TRUE(share.ok()) << share.error().text();
  EXPECT_EQ(share->time_policy.weight, 200);

  EXPECT_THAT(share_from_json(R"({"name":"a","memorry":"1G"})").error().text(),
              HasSubstr("the known keys are: name gpus memory"));
  EXPECT_THAT(share_from_json(R"({"name":"a","memory":true})").error().text(),
              HasSubstr("not a string"));
  EXPECT_EQ(share_from_json("[]").error().code(), Errc::Corrupt);
  EXPECT_EQ(share_from_json("{").error().code(), Errc::Corrupt);
  EXPECT_EQ(share_from_json(std::string(20'000, ' ')).error().code(), Errc::Corrupt);
}

class Fits : public testing::Test {
 protected:
  GpuCapacity card{{"GPU-1"}, 80 * kGiB};
  std::vector<Share> present{made({.name = "a", .memory = "40GiB", .compute = "60%"})};

  Status add(const ShareText& text, Overcommit overcommit = Overcommit::Refused) {
    return check_fits(made(text), present, card, overcommit);
  }
};

TEST_F(Fits, WhatIsLeftMayBeTaken) {
  EXPECT_TRUE(add({.name = "b", .memory = "50%", .compute = "40%"}).ok());
  EXPECT_TRUE(add({.name = "b"}).ok());
}

TEST_F(Fits, MoreThanIsLeftIsRefusedByName) {
  const auto time = add({.name = "b", .compute = "41%"});
  EXPECT_THAT(time.error().text(), HasSubstr("of GPU-1 would be 101% (with a);"));
  EXPECT_THAT(time.error().text(), HasSubstr("--overcommit"));
  EXPECT_THAT(add({.name = "b", .memory = "41GiB"}).error().text(), HasSubstr("memory"));
}

TEST_F(Fits, OnlyThoseThatHaveAPartAreNamed) {
  present.push_back(made({.name = "quiet", .memory = "1GiB"}));
  EXPECT_THAT(add({.name = "b", .compute = "41%"}).error().text(), HasSubstr("(with a);"));
  EXPECT_THAT(add({.name = "b", .memory = "40GiB"}).error().text(), HasSubstr("(with a, quiet);"));
}

TEST_F(Fits, WhereMoreIsPromisedThanThereIsTheOthersMayStillBeChanged) {
  present.push_back(made({.name = "b", .memory = "1GiB", .compute = "70%"}));
  EXPECT_TRUE(add({.name = "b", .memory = "2GiB", .compute = "70%"}).ok()) << "its memory alone";
  EXPECT_TRUE(add({.name = "b", .memory = "1GiB", .compute = "60%"}).ok())
      << "smaller, if not enough";
  EXPECT_TRUE(add({.name = "c", .memory = "1GiB"}).ok()) << "nothing of what is promised twice";
  EXPECT_THAT(add({.name = "b", .compute = "71%"}).error().text(), HasSubstr("131%"));
  EXPECT_FALSE(add({.name = "c", .compute = "1%"}).ok());
}

TEST_F(Fits, OvercommitMustBeSaid) {
  EXPECT_TRUE(add({.name = "b", .memory = "80GiB", .compute = "90%"}, Overcommit::Allowed).ok());
}

TEST_F(Fits, NoHolderGetsMoreThanTheCardHas) {
  EXPECT_THAT(add({.name = "b", .memory = "81GiB"}, Overcommit::Allowed).error().text(),
              HasSubstr("80.0 GiB"));
}

TEST_F(Fits, AShareIsNotInItsOwnWay) {
  EXPECT_TRUE(add({.name = "a", .memory = "80GiB", .compute = "100%"}).ok());
}

}  // namespace
}  // namespace gantry::policy
