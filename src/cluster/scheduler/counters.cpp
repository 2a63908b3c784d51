// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/counters.hpp"

#include <fmt/format.h>

#include <iterator>

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

void AtomicHistogram::append(std::string& page, std::string_view metric,
                             std::string_view verb) const {
  auto out = std::back_inserter(page);
  const auto all = count();  // first: a bucket may be newer, but must not exceed the +Inf bucket
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    below = std::min(all, below + buckets_[i].load(std::memory_order_relaxed));
    fmt::format_to(out, "{}_bucket{{verb=\"{}\",le=\"{}\"}} {}\n", metric, verb, kBounds[i], below);
  }
  fmt::format_to(out, "{}_bucket{{verb=\"{}\",le=\"+Inf\"}} {}\n", metric, verb, all);
  fmt::format_to(out, "{}_sum{{verb=\"{}\"}} {}\n", metric, verb,
                 static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) / 1e9);
  fmt::format_to(out, "{}_count{{verb=\"{}\"}} {}\n", metric, verb, all);
}

}  // namespace gantry::scheduler
