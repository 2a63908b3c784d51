// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/meter.hpp"

#include <gmock/gmock.h>

namespace gantry::policy {
namespace {

using namespace std::chrono_literals;

class MeterTest : public testing::Test {
 protected:
  Meter meter;
  TenantView view;
  Time now = 10s;

  void use(double percent, Time length, Time step = 100ms) {
    for (const auto end = now + length; now < end; now += step) {
      meter.note(1, view, now);
      view.used +=
          Time(static_cast<std::int64_t>(percent / 100 * static_cast<double>(step.count())));
    }
    meter.note(1, view, now);
  }
};

TEST_F(MeterTest, TellsAnyWindow) {
  use(30, 5s);
  use(70, 1s);
  EXPECT_NEAR(meter.percent(1, 1s, now), 70, 0.1);
  EXPECT_NEAR(meter.percent(1, 2s, now), 50, 0.1);
  EXPECT_NEAR(meter.percent(1, 5s, now), 38, 0.1);
}

TEST_F(MeterTest, AYoungTenantHasItsOwnLife) {
  use(50, 1s);
  EXPECT_NEAR(meter.percent(1, 5s, now), 50, 0.1);
  EXPECT_EQ(meter.percent(2, 5s, now), 0);
  meter.forget(1);
  EXPECT_EQ(meter.percent(1, 5s, now), 0);
}

TEST_F(MeterTest, NotesThatComeFastAreNotKeptForEver) {
  use(25, 30s, 1ms);
  EXPECT_NEAR(meter.percent(1, 1s, now), 25, 0.5);
  EXPECT_NEAR(meter.percent(1, 10s, now), 25, 0.5);
}

TEST_F(MeterTest, TheDifferenceIsWhatOnlyTheDriverSaw) {
  use(20, 6s);
  EXPECT_NEAR(static_cast<double>(meter.unreported(1, 60, now - 6s, now).count()), 2.4e9, 1e7);
}

TEST_F(MeterTest, TheDriversRoughCountAccusesNoProcess) {
  use(20, 6s);
  EXPECT_EQ(meter.unreported(1, 26, now - 6s, now), 0ns);
  use(20, 6s);
  EXPECT_EQ(meter.unreported(1, 5, now - 6s, now), 0ns);
}

// Samples and the turns that they are compared with cover different times.
TEST_F(MeterTest, SamplesThatAreOnlyRightOnAverageAccuseNoProcess) {
  for (int i = 0; i < 80; ++i) {
    use(i % 2 == 0 ? 100 : 0, 250ms);
    EXPECT_EQ(meter.unreported(1, i % 2 == 0 ? 0 : 100, now - 1s, now), 0ns) << i;
  }
}

TEST_F(MeterTest, NoTimeIsChargedTwice) {
  use(20, 6s);
  const auto first = meter.unreported(1, 60, now - 6s, now);
  EXPECT_GT(first, 0ns);
  EXPECT_EQ(meter.unreported(1, 60, now - 6s, now), 0ns);
  // The correction itself does not count as a report of later use.
  view.used += first;
  view.corrected += first;
  use(20, 5s);
  EXPECT_NEAR(static_cast<double>(meter.unreported(1, 60, now - 6s, now).count()), 2e9, 1e7);
}

using UsageClaim = UsageVerifier::UsageClaim;

TEST(UsageVerifier, WhatOneHasTooMuchOfAndAnotherTooLittleProvesNothing) {
  UsageVerifier witness;
  const auto verified = witness.verified({{1, UsageClaim{77, 29}}, {2, UsageClaim{20, 71}}}, 1s);
  EXPECT_DOUBLE_EQ(verified.at(1), 29);
  EXPECT_DOUBLE_EQ(verified.at(2), 20);
}

TEST(UsageVerifier, OnlyWhatTheOthersLackIsExcused) {
  UsageVerifier witness;
  EXPECT_DOUBLE_EQ(witness.verified({{1, UsageClaim{77, 29}}, {2, UsageClaim{50, 60}}}, 1s).at(1),
                   67);
  EXPECT_DOUBLE_EQ(witness.verified({{3, UsageClaim{60, 20}}}, 1s).at(3), 60);
}

TEST(UsageVerifier, WhoSaysThatItUsesNothingIsNotExcused) {
  UsageVerifier witness;
  EXPECT_DOUBLE_EQ(witness.verified({{1, UsageClaim{50, 1}}, {2, UsageClaim{50, 100}}}, 1s).at(1),
                   50);
}

TEST(UsageVerifier, NoProcessIsExcusedForEver) {
  UsageVerifier witness;
  const std::map<TenantId, UsageClaim> said{{1, UsageClaim{60, 20}}, {2, UsageClaim{40, 80}}};
  for (auto at = 0s; at < 60s; at += 1s) EXPECT_DOUBLE_EQ(witness.verified(said, at).at(1), 20);
  EXPECT_DOUBLE_EQ(witness.verified(said, 60s).at(1), 60);
  // After one reading without it, counting starts again.
  EXPECT_DOUBLE_EQ(witness.verified({{1, UsageClaim{20, 20}}, {2, UsageClaim{80, 80}}}, 61s).at(1),
                   20);
  EXPECT_DOUBLE_EQ(witness.verified(said, 62s).at(1), 20);
}

}  // namespace
}  // namespace gantry::policy
