// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/gpu_turn_scheduler.hpp"

#include "base/core/bytes.hpp"
#include "sharing/daemon/overhead.hpp"

#include <gtest/gtest.h>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;

class TwoGreedy : public ::testing::Test {
 protected:
  void SetUp() override {
    turns_.add(1, {.percent = 50}, now_);
    turns_.add(2, {.percent = 50}, now_);
  }
  void report(policy::TenantId tenant, std::uint32_t slot, std::uint32_t event,
              std::uint32_t turn = 0) {
    turns_.report(tenant, slot, {.event = event, .gpu = 0, .turn = turn}, now_);
  }
  std::uint32_t gate(policy::TenantId tenant) { return gates_[tenant] & FENCE_GATE_MASK; }
  std::uint32_t turn(policy::TenantId tenant) { return gates_[tenant] >> FENCE_TURN_SHIFT; }
  // Lets time pass until `tenant`'s gate is shut; false after 2 s of it.
  bool until_shut(policy::TenantId tenant) {
    for (int i = 0; i < 2000 && gate(tenant) != FENCE_SHUT; ++i) {
      now_ += 1ms;
      turns_.tick(now_);
    }
    return gate(tenant) == FENCE_SHUT;
  }

  // It was told to leave the GPU a millisecond ago and has not left.
  bool overstays(policy::TenantId tenant) {
    now_ += 1ms;
    turns_.tick(now_);
    return turns_.view(tenant)->overstayed > 0ms;
  }

  policy::Time now_ = 1s;
  std::map<policy::TenantId, std::uint32_t> gates_;
  GpuTurnScheduler turns_{[this](auto tenant, auto word) { gates_[tenant] = word; }};
};

TEST_F(TwoGreedy, ATenantHasDrainedWhenAllItsProcessesHave) {
  report(1, 0, FENCE_ACTIVE);
  report(1, 1, FENCE_ACTIVE);
  report(2, 0, FENCE_ACTIVE);
  report(2, 0, FENCE_ACTIVE);  // reported again at the gate: no change
  ASSERT_TRUE(until_shut(1));
  const auto shut = turn(1);
  report(1, 0, FENCE_DRAINED, shut);
  EXPECT_TRUE(overstays(1)) << "the other process has not";
  report(1, 1, FENCE_DRAINED, shut - 1);
  EXPECT_TRUE(overstays(1)) << "that was another turn";
  report(1, 1, FENCE_DRAINED, shut);
  EXPECT_FALSE(overstays(1));
}

TEST_F(TwoGreedy, WhoDiesHasDrained) {
  report(1, 0, FENCE_ACTIVE);
  report(1, 1, FENCE_ACTIVE);
  report(2, 0, FENCE_ACTIVE);
  ASSERT_TRUE(until_shut(1));
  report(1, 0, FENCE_DRAINED, turn(1));
  EXPECT_TRUE(overstays(1));
  turns_.gone(1, 1, now_);
  EXPECT_FALSE(overstays(1));
}

TEST_F(TwoGreedy, TheRowSaysWhatALostReportWouldHave) {
  turns_.look(1, 0, {.busy = true}, now_);
  EXPECT_TRUE(turns_.view(1)->busy);
  turns_.look(1, 0, {.busy = false}, now_);
  EXPECT_FALSE(turns_.view(1)->busy);
  turns_.look(1, 0, {.busy = true}, now_);
  report(2, 0, FENCE_ACTIVE);
  ASSERT_TRUE(until_shut(1));
  EXPECT_TRUE(overstays(1));
  turns_.look(1, 0, {.drained = turn(1), .busy = true}, now_);
  EXPECT_FALSE(overstays(1));
}

TEST_F(TwoGreedy, OneThatIsRemovedLeavesItsGateOpen) {
  report(1, 0, FENCE_ACTIVE);
  report(2, 0, FENCE_ACTIVE);
  ASSERT_TRUE(until_shut(1));
  turns_.remove(1, now_);
  EXPECT_EQ(gate(1), static_cast<std::uint32_t>(FENCE_OPEN));
  report(1, 0, FENCE_IDLE);  // sent before the removal was known
}

TEST(Overhead, IsWhatNvmlHasBeyondTheLedger) {
  const ProcessUsage row{.held = 100 * kMiB, .contexts = 1};
  EXPECT_EQ(updated_overhead({}, row, row, 600 * kMiB), (Overhead{500 * kMiB, 1}));
  EXPECT_EQ(updated_overhead({}, row, row, std::nullopt), Overhead{});
}

TEST(Overhead, LeavesOutManagedMemoryWhichNvmlDoesNotShow) {
  const ProcessUsage row{.held = 100 * kMiB, .managed = 60 * kMiB, .contexts = 1};
  EXPECT_EQ(updated_overhead({}, row, row, 540 * kMiB), (Overhead{500 * kMiB, 1}));
}

TEST(Overhead, OfAProcessThatAllocatesMeanwhileIsAtLeastWhatBothLooksLeave) {
  const ProcessUsage before{.held = 100 * kMiB, .contexts = 1};
  const ProcessUsage after{.held = 300 * kMiB, .contexts = 1};
  const Overhead known{500 * kMiB, 1};
  EXPECT_EQ(updated_overhead(known, before, after, 600 * kMiB), known) << "NVML had not seen it";
  EXPECT_EQ(updated_overhead(known, before, after, 900 * kMiB), (Overhead{600 * kMiB, 1}));
}

TEST(Overhead, OfANewContextIsNotKnownUntilTheProcessIsQuiet) {
  const ProcessUsage before{.held = 100 * kMiB, .contexts = 1};
  const ProcessUsage after{.held = 300 * kMiB, .contexts = 1};
  EXPECT_EQ(updated_overhead({}, before, after, 800 * kMiB), Overhead{})
      << "500 MiB of it, or 700?";
  const ProcessUsage making{.pending = 1, .contexts = 1};
  EXPECT_EQ(updated_overhead({}, making, making, 104 * kMiB), Overhead{})
      << "a part of what it will be";
  EXPECT_EQ(updated_overhead({}, after, after, 800 * kMiB), (Overhead{500 * kMiB, 1}));
}

TEST(Overhead, OfTheFirstContextTellsWhatOneCosts) {
  EXPECT_EQ(context_cost({}, {500 * kMiB, 1}), 500 * kMiB);
  EXPECT_EQ(context_cost({500 * kMiB, 1}, {700 * kMiB, 1}), std::nullopt) << "modules";
}

}  // namespace
}  // namespace gantry::daemon
