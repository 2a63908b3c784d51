// SPDX-License-Identifier: Apache-2.0
#include "gpu/health/xid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::health {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(XidTable, NvidiasHarmlessOnesAreHarmless) {
  for (const auto xid : {13U, 31U, 43U, 45U, 68U, 109U}) {
    EXPECT_EQ(xid_meaning(xid).kind, XidClass::Application) << xid;
    EXPECT_FALSE(XidPolicy{}.counts(xid)) << xid;
  }
}

TEST(XidTable, TheCatalogueDecidesTheOthers) {
  EXPECT_EQ(xid_meaning(94).kind, XidClass::Contained);
  EXPECT_EQ(xid_meaning(63).kind, XidClass::Watch);
  EXPECT_EQ(xid_meaning(79).kind, XidClass::Reboot);
  EXPECT_EQ(xid_meaning(64).kind, XidClass::Replace);
  for (const auto xid : {48U, 61U, 62U, 64U, 74U, 79U, 95U, 119U, 120U, 123U, 140U})
    EXPECT_TRUE(XidPolicy{}.counts(xid)) << xid;
}

TEST(XidTable, AnUnknownNumberCounts) {
  EXPECT_TRUE(XidPolicy{}.counts(999));
  EXPECT_TRUE(XidPolicy{}.counts(4'000'000'000U));
}

TEST(XidTable, ClassesHaveWords) {
  for (const auto kind : {XidClass::Application, XidClass::Watch, XidClass::Contained,
                          XidClass::Reset, XidClass::Drain, XidClass::Reboot, XidClass::Replace})
    EXPECT_EQ(xid_class_from_string(to_string(kind)), kind);
  EXPECT_FALSE(xid_class_from_string("pray"));
}

TEST(XidPolicy, DisablingAddsToTheHarmless) {
  const auto read = parse_xid_policy({.disable = " 79, 48 "});
  EXPECT_FALSE(read.policy.counts(79));
  EXPECT_FALSE(read.policy.counts(48));
  EXPECT_FALSE(read.policy.counts(13));
  EXPECT_TRUE(read.policy.counts(119));
}

TEST(XidPolicy, DisablingAllLeavesTheEnabled) {
  for (const auto* word : {"all", "xids", "13,ALL"}) {
    const auto read = parse_xid_policy({.disable = word, .enable = "79"});
    EXPECT_FALSE(read.policy.counts(48)) << word;
    EXPECT_TRUE(read.policy.counts(79)) << word;
  }
}

TEST(XidPolicy, EnablingBeatsDisabling) {
  const auto read = parse_xid_policy({.disable = "13,79", .enable = "13"});
  EXPECT_TRUE(read.policy.counts(13));
  EXPECT_FALSE(read.policy.counts(79));
}

TEST(XidPolicy, EnablingAllCountsEverything) {
  const auto read = parse_xid_policy({.disable = "all", .enable = "all"});
  EXPECT_TRUE(read.policy.counts(13));
  EXPECT_TRUE(read.policy.counts(94));
}

TEST(XidPolicy, GkesListsCount) {
  const auto read = parse_xid_policy({.gke = "31,43", .critical = {94}});
  for (const auto xid : {31U, 43U, 94U, 48U}) EXPECT_TRUE(read.policy.counts(xid)) << xid;
  EXPECT_FALSE(read.policy.counts(13));
}

TEST(XidPolicy, TypingErrorsAreReportedAndIgnored) {
  const auto read = parse_xid_policy({.disable = "79x,,48,-1", .enable = "99999999999999999999"});
  EXPECT_THAT(read.ignored, ElementsAre("79x", "-1", "99999999999999999999"));
  EXPECT_THAT(read.policy.harmless, ElementsAre(48U));
  EXPECT_THAT(parse_xid_policy({}).ignored, IsEmpty());
}

}  // namespace
}  // namespace gantry::health
