// SPDX-License-Identifier: Apache-2.0
// The turn scheduler's settings of a tenant.
#pragma once

#include <chrono>
#include <cstdint>

namespace gantry::policy {

// A point in time on a monotonic clock (CLOCK_MONOTONIC; virtual in tests), or a duration.
using Time = std::chrono::nanoseconds;

// Accounts are kept in fractions of a nanosecond.
constexpr double ns(Time time) {
  return static_cast<double>(time.count());
}

// What happens beyond the tenant's own percentage of GPU time.
enum class Excess : std::uint8_t {
  Refused,  // hard cap: the GPU idles instead
  Allowed   // work-conserving: it may use what others leave
};

// The order where percentages do not decide: for time that others leave, and among tenants with a
// weight.
enum class Priority : std::uint8_t { Low, Normal, High };

struct TimePolicy {
  std::uint32_t percent = 0;  // of the GPU's time; 0: by weight, a part of what percentages leave
  std::uint32_t weight = 100;
  Excess excess = Excess::Allowed;  // Refused only with a percentage
  Priority priority = Priority::Normal;
  bool operator==(const TimePolicy&) const = default;
};

}  // namespace gantry::policy
