// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/gpu_health.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::probe {
namespace {

using model::HealthState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_degraded(const HealthFacts& facts, const std::string& reason) {
  const auto health = assess_health(facts);
  EXPECT_EQ(health.state, HealthState::Degraded) << reason;
  EXPECT_THAT(health.reasons, ElementsAre(HasSubstr(reason)));
}

TEST(Health, IsOkWhenNothingSpeaksAgainstIt) {
  const auto health = assess_health({});
  EXPECT_EQ(health.state, HealthState::Ok);
  EXPECT_THAT(health.reasons, IsEmpty());
}

TEST(Health, IsOkWithQuietCounters) {
  HealthFacts facts;
  facts.ecc_uncorrected_volatile = 0;
  facts.row_remap_failure = false;
  facts.row_remap_pending = false;
  facts.page_retirement_pending = false;
  facts.recovery_action = RecoveryAction::None;
  EXPECT_EQ(assess_health(facts).state, HealthState::Ok);
}

TEST(Health, IsLostWhateverElseIsKnown) {
  HealthFacts facts;
  facts.lost = "GPU is lost";
  facts.ecc_uncorrected_volatile = 3;
  const auto health = assess_health(facts);
  EXPECT_EQ(health.state, HealthState::Lost);
  EXPECT_THAT(health.reasons, ElementsAre("GPU is lost"));
}

TEST(Health, AsksForOneResetOnce) {
  HealthFacts facts;
  facts.reset_required = true;
  facts.recovery_action = RecoveryAction::GpuReset;
  expect_degraded(facts, "must be reset");
  facts.recovery_action = RecoveryAction::NodeReboot;
  EXPECT_THAT(assess_health(facts).reasons,
              ElementsAre(HasSubstr("must be reset"), HasSubstr("reboot")));
}

TEST(Health, DegradesByEachRule) {
  HealthFacts facts;
  facts.reset_required = true;
  expect_degraded(facts, "--gpu-reset");
  facts = {};
  facts.ecc_uncorrected_volatile = 1;
  expect_degraded(facts, "1 uncorrectable memory error since");
  facts = {};
  facts.row_remap_failure = true;
  expect_degraded(facts, "needs repair");
  facts = {};
  facts.row_remap_pending = true;
  expect_degraded(facts, "next GPU reset");
  facts = {};
  facts.page_retirement_pending = true;
  expect_degraded(facts, "retired");
  facts = {};
  facts.recovery_action = RecoveryAction::NodeReboot;
  expect_degraded(facts, "reboot");
  facts = {};
  facts.thermal_slowdown = true;
  expect_degraded(facts, "too hot");
  facts = {};
  facts.power_brake = true;
  expect_degraded(facts, "power brake");
  facts = {};
  facts.fabric = "fabric not ready";
  expect_degraded(facts, "fabric not ready");
  facts = {};
  facts.failures = {"nvmlDeviceGetName: Unknown Error"};
  expect_degraded(facts, "nvmlDeviceGetName");
}

TEST(Health, GivesAllReasons) {
  HealthFacts facts;
  facts.ecc_uncorrected_volatile = 2;
  facts.row_remap_pending = true;
  EXPECT_THAT(assess_health(facts).reasons,
              ElementsAre(HasSubstr("2 uncorrectable"), HasSubstr("remapped")));
}

}  // namespace
}  // namespace gantry::probe
