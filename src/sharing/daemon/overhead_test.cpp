// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/overhead.hpp"

#include "base/core/bytes.hpp"

#include <gtest/gtest.h>

namespace gantry::daemon {
namespace {

constexpr Overhead kKnown{.bytes = 500 * kMiB, .contexts = 1};

ProcessUsage holding(std::uint64_t bytes, std::uint64_t calls) {
  ProcessUsage usage;
  usage.held = bytes;
  usage.contexts = 1;
  usage.ended = calls;
  usage.begun = calls;
  return usage;
}

TEST(Accounts, WhatIsBeyondTheLedgerIsOverhead) {
  const auto row = holding(100 * kMiB, 7);
  EXPECT_EQ(updated_overhead(kKnown, row, row, 640 * kMiB).bytes, 540 * kMiB);
  EXPECT_EQ(updated_overhead(kKnown, row, row, 560 * kMiB).bytes, 460 * kMiB);
}

// 64 MiB are freed and allocated again between two readings; NVML was read in between.
TEST(Accounts, MemoryThatWasGoneForAMomentIsNotLessOverhead) {
  const auto before = holding(100 * kMiB, 7);
  const auto after = holding(100 * kMiB, 9);
  EXPECT_FALSE(is_quiescent(before, after));
  EXPECT_EQ(updated_overhead(kKnown, before, after, 536 * kMiB), kKnown);
}

// Both readings and NVML's fall into one call: the driver has not allocated yet what is reserved,
// or has freed what is still counted.
TEST(Accounts, ACallThatIsUnderWayIsNotTrusted) {
  auto row = holding(164 * kMiB, 7);
  row.begun = 8;
  EXPECT_FALSE(is_quiescent(row, row));
  EXPECT_EQ(updated_overhead(kKnown, row, row, 600 * kMiB), kKnown);
}

TEST(Accounts, ACallThatEndsBetweenTheReadingsIsNotTrusted) {
  auto before = holding(164 * kMiB, 7);
  before.begun = 8;
  EXPECT_EQ(updated_overhead(kKnown, before, holding(164 * kMiB, 8), 600 * kMiB), kKnown);
}

TEST(Accounts, AnAmountWithoutAnotherExplanationIsTrustedAtOnce) {
  EXPECT_EQ(
      updated_overhead(kKnown, holding(100 * kMiB, 7), holding(120 * kMiB, 8), 700 * kMiB).bytes,
      580 * kMiB);
}

TEST(Accounts, WhoHasNothingOnTheGpuHasNoOverhead) {
  const auto row = holding(0, 7);
  EXPECT_EQ(updated_overhead(kKnown, row, row, std::nullopt), Overhead{});
}

}  // namespace
}  // namespace gantry::daemon
