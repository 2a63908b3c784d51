// SPDX-License-Identifier: Apache-2.0
// What the scheduler of turns must know of a tenant.
#pragma once

#include <chrono>
#include <cstdint>

namespace gantry::policy {

// A moment on a clock that never goes back (CLOCK_MONOTONIC; virtual in tests), or a length of
// time.
using Time = std::chrono::nanoseconds;

// Accounts are kept in fractions of a nanosecond.
constexpr double ns(Time time) {
  return static_cast<double>(time.count());
}

// GPU time beyond the tenant's own per cent.
enum class Excess : std::uint8_t {
  Refused,  // hard cap: the GPU rather idles
  Allowed   // work-conserving: what others leave is used
};

// Who comes first where shares do not decide: to what others leave, and among tenants by weight.
enum class Priority : std::uint8_t { Low, Normal, High };

struct TimePolicy {
  std::uint32_t percent = 0;  // of the GPU's time; 0: a part, by weight, of what per cents leave
  std::uint32_t weight = 100;
  Excess excess = Excess::Allowed;  // Refused only with a per cent
  Priority priority = Priority::Normal;
  bool operator==(const TimePolicy&) const = default;
};

}  // namespace gantry::policy
