// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/audit.hpp"

#include "base/core/bytes.hpp"

#include <gmock/gmock.h>

namespace gantry::policy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Audit : public testing::Test {
 protected:
  Share share{.name = "team-a",
              .time_policy = {.percent = 30, .excess = Excess::Refused},
              .time_limited = true};
  AuditInput seen{.gpu = {"GPU-1"}, .memory_limit = 10 * kGiB};
  AuditState state;
  Time now = 100s;

  void process(std::uint32_t pid, std::uint64_t memory, bool attached = true,
               std::uint64_t ledger = 0) {
    seen.processes.push_back({pid, memory, ledger, attached});
  }
  // Audits four times a second until there is a finding.
  std::optional<Finding> first_within(Time limit) {
    for (const auto end = now + limit; now <= end; now += 250ms) {
      auto look = audit(share, seen, state, now);
      if (!look.findings.empty()) return look.findings.front();
    }
    return std::nullopt;
  }
};

TEST_F(Audit, WhoKeepsItsLimitsIsNotFound) {
  process(1, 6 * kGiB);
  process(2, 4 * kGiB + (100 << 20));  // modules, within the slack
  seen.driver_percent = 31;
  seen.charged_percent = 30;
  EXPECT_FALSE(first_within(10s));
}

TEST_F(Audit, MemoryOverTheLimitIsSeenWithinASecond) {
  process(1, 6 * kGiB, true, 6 * kGiB);
  process(2, 5 * kGiB, true, 1 * kGiB);
  const auto found = first_within(1s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offence, ViolationKind::MemoryLimit);
  EXPECT_EQ(found->severity, Severity::Violation);
  EXPECT_THAT(found->pids, ElementsAre(2));  // whose ledger does not count it
  EXPECT_THAT(found->text, HasSubstr("team-a uses 11.0 GiB on GPU-1, its limit is 10.0 GiB"));
}

TEST_F(Audit, ASpikeOfOneLookIsNoFinding) {
  process(1, 11 * kGiB);
  EXPECT_THAT(audit(share, seen, state, now).findings, IsEmpty());
  seen.processes.front().memory_bytes = 1 * kGiB;
  audit(share, seen, state, now + 250ms);
  seen.processes.front().memory_bytes = 11 * kGiB;
  EXPECT_THAT(audit(share, seen, state, now + 500ms).findings, IsEmpty());
}

TEST_F(Audit, ContextsCountOnlyWhereTheyAreCounted) {
  process(1, 10 * kGiB + kGiB / 2);
  share.context_memory = ContextMemory::Free;
  EXPECT_FALSE(first_within(5s));
  share.context_memory = ContextMemory::Counted;
  EXPECT_TRUE(first_within(1s));
}

TEST_F(Audit, AProcessPastTheFenceIsSeenWithinASecond) {
  process(1, 1 * kGiB);
  process(2, 300 << 20, false);
  const auto found = first_within(1s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offence, ViolationKind::PastFence);
  EXPECT_THAT(found->pids, ElementsAre(2));
}

TEST_F(Audit, WithPolicyReportItIsOnlyReported) {
  share.unattached = UnattachedPolicy::Pass;
  share.violation = ViolationPolicy::Stop;
  process(2, 300 << 20, false);
  const auto found = first_within(1s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::Warning);
  EXPECT_EQ(found->action, ViolationPolicy::Report);
}

TEST_F(Audit, UnreportedTimeIsSeenWithinThreeSeconds) {
  process(1, 1 * kGiB);
  share.time_policy = {};
  seen.driver_percent = 60;
  seen.charged_percent = 20;
  const auto begin = now;
  const auto found = first_within(3s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offence, ViolationKind::HiddenTime);
  EXPECT_GE(now - begin, 1s);  // NVML's samples cover the last second
  EXPECT_THAT(found->text, HasSubstr("60 % of the time of GPU-1 but reports 20 %"));
}

TEST_F(Audit, MoreThanTheCapIsSeenEvenIfReported) {
  process(1, 1 * kGiB);
  seen.driver_percent = 70;
  seen.charged_percent = 70;
  const auto found = first_within(3s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offence, ViolationKind::OverCap);
}

TEST_F(Audit, OneLongKernelIsOverTheCapAndNotStopped) {
  process(1, 1 * kGiB);
  share.violation = ViolationPolicy::Stop;
  seen.driver_percent = 100;
  seen.charged_percent = 100;
  seen.overstayed = 2s;
  const auto found = first_within(3s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offence, ViolationKind::OverCap);
  EXPECT_EQ(found->action, ViolationPolicy::Report);
  seen.overstayed = 40s;
  EXPECT_EQ(audit(share, seen, state, now).findings.front().action, ViolationPolicy::Stop);
}

TEST_F(Audit, WithoutALimitOfTimeThereIsNoneToBreak) {
  process(1, 1 * kGiB);
  share.time_policy = {};
  share.time_limited = false;
  seen.driver_percent = 100;
  EXPECT_FALSE(first_within(10s));
}

TEST_F(Audit, AVeryLongKernelIsReportedAndNeverStopped) {
  process(1, 1 * kGiB);
  share.violation = ViolationPolicy::Stop;
  seen.overstayed = 5s;
  const auto found = first_within(1s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offence, ViolationKind::Overstay);
  EXPECT_EQ(found->action, ViolationPolicy::Report);
}

TEST_F(Audit, PolicyDecidesWhetherItIsStopped) {
  process(1, 11 * kGiB);
  EXPECT_EQ(first_within(1s)->action, ViolationPolicy::Report);
  share.violation = ViolationPolicy::Stop;
  EXPECT_EQ(audit(share, seen, state, now).findings.front().action, ViolationPolicy::Stop);
}

TEST_F(Audit, IsReportedOnceAndOverOnlyWhenGoneForAWhile) {
  process(1, 11 * kGiB);
  EXPECT_TRUE(first_within(1s)->fresh);
  EXPECT_FALSE(audit(share, seen, state, now).findings.front().fresh);
  seen.processes.front().memory_bytes = 9 * kGiB;
  EXPECT_THAT(audit(share, seen, state, now + 1s).over, IsEmpty());
  seen.processes.front().memory_bytes = 11 * kGiB;
  EXPECT_FALSE(audit(share, seen, state, now + 2s).findings.front().fresh);
  seen.processes.clear();
  EXPECT_THAT(audit(share, seen, state, now + 4s).over, ElementsAre(ViolationKind::MemoryLimit));
  EXPECT_THAT(audit(share, seen, state, now + 5s).over, IsEmpty());
}

}  // namespace
}  // namespace gantry::policy
