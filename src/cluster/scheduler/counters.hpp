// SPDX-License-Identifier: Apache-2.0
// The scheduler's own counters. Any thread may use them at any time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace gantry::scheduler {

// A distribution of durations, as a Prometheus histogram.
class AtomicHistogram {
 public:
  static constexpr std::array<double, 12> kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                     0.01,   0.025,   0.05,   0.1,   1,      10};
  void add(std::chrono::nanoseconds took);
  void failed() { failures_.fetch_add(1, std::memory_order_relaxed); }

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }
  struct Values {
    std::array<std::uint64_t, kBounds.size()> buckets{};  // each includes the buckets below it
    std::uint64_t count = 0;
    double sum_s = 0;
  };
  Values values() const;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds.size()> buckets_{};  // not cumulative
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> nanoseconds_{0};
  std::atomic<std::uint64_t> failures_{0};
};

class Stopwatch {
 public:
  explicit Stopwatch(AtomicHistogram& into) : into_(into) {}
  ~Stopwatch() { into_.add(std::chrono::steady_clock::now() - since_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  AtomicHistogram& into_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

struct SchedulerCounters {
  AtomicHistogram filter;
  AtomicHistogram prioritize;
  AtomicHistogram preempt;
  AtomicHistogram bind;      // including the API server's part
  AtomicHistogram decision;  // of a bind, without the API server's part
  AtomicHistogram admit;
  std::atomic<std::uint64_t> bound{0};
  std::atomic<std::uint64_t> unknown{0};  // Bindings without an answer
  std::atomic<std::uint64_t> invalid_requests{0};
  std::atomic<std::uint64_t> evicted{0};
};

}  // namespace gantry::scheduler
