// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace gantry {

// The time of day, in nanoseconds since 1970.
inline std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

inline std::int64_t unix_ms() {
  return unix_ns() / 1'000'000;
}

// In seconds.
inline std::int64_t unix_now() {
  return unix_ns() / 1'000'000'000;
}

}  // namespace gantry
