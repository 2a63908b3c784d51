// SPDX-License-Identifier: Apache-2.0
// Tells a fault from a busy machine. Other programs had the processors if a thread that only sleeps
// a millisecond at a time was late, or if this process's threads were ready to run but waited.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

namespace gantry::test {

class LoadMonitor {
 public:
  LoadMonitor() : thread_([this] { watch(); }) {}
  ~LoadMonitor() { end(); }
  LoadMonitor(const LoadMonitor&) = delete;
  LoadMonitor& operator=(const LoadMonitor&) = delete;

  // Whether the machine was quiet since the monitor was made. It does not look any further.
  bool was_quiet() {
    end();
    const auto passed = Clock::now() - begun_;
    return longest_ < kLongest && late_ < passed * kLatePart &&
           time_waited() - waited_ < passed * kWaitedPart;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kPause = std::chrono::milliseconds(1);
  static constexpr Clock::duration kLongest = std::chrono::milliseconds(10);
  static constexpr double kLatePart = 0.2;  // an idle machine is late by less than a tenth
  static constexpr double kWaitedPart = 0.05;

  // How long all threads of this process have waited for a processor; 0 if the kernel does not say.
  static Clock::duration time_waited() {
    std::chrono::nanoseconds sum{0};
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
      std::ifstream file(task.path() / "schedstat");
      std::int64_t ran = 0;
      std::int64_t waited = 0;
      if (file >> ran >> waited) sum += std::chrono::nanoseconds(waited);
    }
    return sum;
  }

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
  Clock::duration waited_ = time_waited();
  Clock::duration longest_{0};
  Clock::duration late_{0};
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace gantry::test
