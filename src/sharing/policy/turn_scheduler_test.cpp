// SPDX-License-Identifier: Apache-2.0
// Single decisions of the turn scheduler. turn_scheduler_turns_test.cpp tests what tenants get from
// them.
#include "sharing/policy/turn_scheduler.hpp"

#include <gmock/gmock.h>

namespace gantry::policy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePolicy kHalf{.percent = 50};
constexpr TimePolicy kCapped{.percent = 50, .excess = Excess::Refused};

class Decisions : public testing::Test {
 protected:
  TurnScheduler controller;

  Gate gate(TenantId id) { return controller.gate(id).gate; }
  void drained(TenantId id, Time at) { controller.drained(id, controller.gate(id).turn, at); }
  // Two greedy tenants; the first has the turn.
  void two_greedy() {
    controller.add(1, kHalf, 0ms);
    controller.add(2, kHalf, 0ms);
    controller.active(1, 0ms);
    controller.tick(4ms);  // its savings are spent, the turn is its own
    controller.active(2, 4ms);
    drained(1, 4ms);
    controller.tick(10ms);  // so are the other's
    drained(2, 10ms);
    ASSERT_EQ(gate(1), Gate::Open);
    ASSERT_EQ(gate(2), Gate::Shut);
  }
};

TEST_F(Decisions, AloneWithoutACapIsNeverShut) {
  controller.add(1, {}, 0ms);
  controller.active(1, 1ms);
  controller.tick(500ms);
  EXPECT_EQ(gate(1), Gate::Open);
  EXPECT_EQ(controller.gate(1).turn, 0);
}

// The caller was stopped for three seconds; the tenant kept to its cap by itself.
TEST_F(Decisions, NoTenantPaysForTimeWithoutADecision) {
  controller.add(1, {.percent = 50, .excess = Excess::Refused}, 0ms);
  controller.active(1, 1ms);
  controller.tick(2ms);
  const auto before = controller.view(1)->credit;
  controller.resume(3002ms);
  EXPECT_EQ(controller.view(1)->credit, before);
  controller.tick(3060ms);
  EXPECT_EQ(gate(1), Gate::Shut) << "from then on it is charged as before";
  EXPECT_GT(controller.view(1)->credit, -100ms);
}

// To a daemon that was started again, a tenant that went on working looks idle for a second.
TEST_F(Decisions, ACappedTenantSavesNothingBeforeItsFirstWork) {
  controller.add(1, {.percent = 50, .excess = Excess::Refused}, 0ms);
  controller.active(1, 1000ms);
  EXPECT_LE(controller.view(1)->credit, 2ms);
  controller.add(2, {.percent = 50, .excess = Excess::Refused}, 1000ms);
  EXPECT_EQ(controller.view(2)->credit, controller.view(1)->credit);
}

TEST_F(Decisions, NothingToDoIsNothingToWaitFor) {
  EXPECT_FALSE(controller.deadline());
  controller.add(1, {}, 0ms);
  controller.tick(1s);
  EXPECT_FALSE(controller.deadline());
}

TEST_F(Decisions, ADeadlineIsNeverFarAway) {
  for (const TenantId id : {1u, 2u, 3u}) controller.add(id, {}, 0ms);
  for (const TenantId id : {1u, 2u, 3u}) controller.active(id, 100ms);  // earn what they spend
  for (auto now = 100ms; now < 400ms; now += 1ms) {
    ASSERT_TRUE(controller.deadline());
    EXPECT_LE(*controller.deadline(), now + 2h);
    controller.tick(now);
  }
}

TEST_F(Decisions, OrdersAreGivenOnce) {
  controller.add(1, {}, 0ms);
  EXPECT_THAT(controller.take_gate_changes(), ElementsAre(GateChange{1, {Gate::Open, 0}}));
  EXPECT_THAT(controller.take_gate_changes(), IsEmpty());
}

TEST_F(Decisions, TheNextOpensWhenTheLastHasDrained) {
  two_greedy();
  controller.take_gate_changes();
  controller.tick(100ms);
  EXPECT_THAT(controller.take_gate_changes(), ElementsAre(GateChange{1, {Gate::Shut, 2}}));
  drained(1, 101ms);
  EXPECT_THAT(controller.take_gate_changes(), ElementsAre(GateChange{2, {Gate::Open, 1}}));
}

TEST_F(Decisions, TheNextOpensAfterTheBoundEvenSo) {
  two_greedy();
  controller.tick(100ms);
  ASSERT_EQ(gate(1), Gate::Shut);
  EXPECT_EQ(gate(2), Gate::Shut);
  ASSERT_TRUE(controller.deadline());
  EXPECT_LE(*controller.deadline(), 151ms);
  controller.tick(151ms);
  EXPECT_EQ(gate(2), Gate::Open);
  EXPECT_EQ(controller.view(1)->overstayed, 51ms);
}

TEST_F(Decisions, ATurnEndsWithItsWork) {
  two_greedy();
  controller.idle(1, 12ms);
  EXPECT_NE(gate(2), Gate::Shut);
}

TEST_F(Decisions, AReportOfAnOldTurnOpensNothing) {
  two_greedy();
  controller.tick(100ms);
  controller.drained(1, controller.gate(1).turn - 1, 101ms);
  EXPECT_EQ(gate(2), Gate::Shut);
}

TEST_F(Decisions, ATenantWithSavingsShutsTheOthersAndDoesNotWait) {
  controller.add(1, kHalf, 0ms);
  controller.add(2, kHalf, 0ms);
  controller.active(1, 0ms);
  controller.tick(100ms);
  ASSERT_EQ(gate(1), Gate::Open);
  EXPECT_EQ(gate(2), Gate::Open);  // idle, with savings
  controller.active(2, 100ms);
  EXPECT_EQ(gate(2), Gate::Open);
  EXPECT_EQ(gate(1), Gate::Shut);
  controller.idle(2, 101ms);
  EXPECT_EQ(gate(1), Gate::One);  // the other may come back
  controller.tick(1200ms);
  EXPECT_EQ(gate(1), Gate::Open);
}

TEST_F(Decisions, SavingsAreSpentInTheEnd) {
  controller.add(1, kHalf, 0ms);
  controller.add(2, kHalf, 0ms);
  controller.active(1, 0ms);
  controller.active(2, 200ms);  // with 50 ms saved
  ASSERT_EQ(gate(2), Gate::Open);
  drained(1, 200ms);
  ASSERT_TRUE(controller.deadline());
  EXPECT_LE(*controller.deadline(), 251ms);
  controller.tick(251ms);
  EXPECT_EQ(gate(2), Gate::Shut);
  drained(2, 252ms);
  EXPECT_EQ(gate(1), Gate::Open);
}

TEST_F(Decisions, WhoWasBriefAndWorksForLongIsGreedyLikeTheRest) {
  controller.add(1, kHalf, 0ms);
  controller.add(2, kHalf, 0ms);
  controller.active(1, 200ms);
  controller.idle(1, 201ms);
  controller.active(1, 202ms);
  controller.active(2, 202ms);
  for (auto now = 202ms; gate(1) != Gate::Shut; now += 1ms) controller.tick(now);
  drained(1, 400ms);
  EXPECT_FALSE(controller.view(1)->express);
  EXPECT_NE(gate(2), Gate::Shut);
}

TEST_F(Decisions, UnderACapTheGateShutsWithTheSavingsAlsoWhenIdle) {
  controller.add(1, kCapped, 0ms);
  controller.active(1, 0ms);
  controller.tick(10ms);
  EXPECT_EQ(gate(1), Gate::Shut);
  controller.idle(1, 40ms);  // drained late: debt
  EXPECT_LT(controller.view(1)->credit, 0ns);
  EXPECT_EQ(gate(1), Gate::Shut);
  ASSERT_TRUE(controller.deadline());
  controller.tick(*controller.deadline());
  EXPECT_EQ(gate(1), Gate::Open);
}

TEST_F(Decisions, ARemovedTenantLeavesItsTurn) {
  two_greedy();
  controller.remove(1, 11ms);
  EXPECT_EQ(gate(2), Gate::Open);
  EXPECT_FALSE(controller.view(1));
}

TEST_F(Decisions, WhatTheDriverCountedIsCharged) {
  two_greedy();
  const auto before = controller.view(1)->used;
  controller.charge(1, 30ms, 10ms);
  EXPECT_EQ(controller.view(1)->used - before, 30ms);
  EXPECT_EQ(controller.view(1)->corrected, 30ms);
}

}  // namespace
}  // namespace gantry::policy
