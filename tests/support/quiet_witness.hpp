// SPDX-License-Identifier: Apache-2.0
// Tells a fault from a busy machine: a thread that only sleeps a millisecond at a time beside the
// code under test. If even it was late, other programs had the processors.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace gantry::test {

class QuietWitness {
 public:
  QuietWitness() : thread_([this] { watch(); }) {}
  ~QuietWitness() { end(); }
  QuietWitness(const QuietWitness&) = delete;
  QuietWitness& operator=(const QuietWitness&) = delete;

  // Whether the machine was quiet since the witness was made. It does not look any further.
  bool was_quiet() {
    end();
    return longest_ < kLongest && late_ < (Clock::now() - begun_) * kLatePart;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kPause = std::chrono::milliseconds(1);
  static constexpr Clock::duration kLongest = std::chrono::milliseconds(10);
  static constexpr double kLatePart = 0.2;  // an idle machine is late by less than a tenth

  void watch() {
    for (auto before = Clock::now(); !over_;) {
      std::this_thread::sleep_for(kPause);
      const auto now = Clock::now();
      longest_ = std::max(longest_, now - before - kPause);
      late_ += now - before - kPause;
      before = now;
    }
  }
  void end() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

  Clock::time_point begun_ = Clock::now();
  Clock::duration longest_{0};
  Clock::duration late_{0};
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace gantry::test
