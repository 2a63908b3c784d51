// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/counters.hpp"

#include <algorithm>

namespace gantry::scheduler {

void AtomicHistogram::add(std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds > kBounds[i]) continue;
    buckets_[i].fetch_add(1, std::memory_order_relaxed);
    break;
  }
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  count_.fetch_add(1, std::memory_order_relaxed);
}

AtomicHistogram::Values AtomicHistogram::values() const {
  Values values{.count = count()};  // first: a bucket may be newer, but must not exceed the count
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    below = std::min(values.count, below + buckets_[i].load(std::memory_order_relaxed));
    values.buckets[i] = below;
  }
  values.sum_s = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) / 1e9;
  return values;
}

}  // namespace gantry::scheduler
