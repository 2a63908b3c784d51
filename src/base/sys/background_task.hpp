// SPDX-License-Identifier: Apache-2.0
// A thread that does one thing again and again: it runs a function, then waits until it is woken,
// until a period has passed, or until it is stopped. net/kube/informer.cpp keeps a loop of its own:
// it does not wait after a run that succeeded, because a list is followed by a watch at once. Its
// pause after a failure depends on the server's Retry-After and on the progress of earlier watches.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/stop_signal.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace gantry::sys {

class BackgroundTask {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // One run. A run that may take long must end early when `stop` is requested.
  using Work = std::function<Status(const std::stop_token& stop)>;

  enum class WakePolicy : std::uint8_t {
    Deferred,  // wake() does not shorten the pause
    Honored
  };
  // The pause after a failed run: doubled after each further failure, with a jitter of 20 %. Then
  // the work runs again.
  struct Retry {
    Milliseconds first = std::chrono::seconds(1);
    Milliseconds max = std::chrono::seconds(30);
    WakePolicy wakes = WakePolicy::Deferred;
  };
  enum class FirstRun : std::uint8_t { AtStart, AfterPeriod };

  struct Options {
    std::string name;                    // of the thread; the kernel shows the first 15 bytes
    std::optional<Milliseconds> period;  // after a run that succeeded; nullopt: until it is woken
    Retry retry = {};
    FirstRun first_run = FirstRun::AtStart;
    StopSignal* cancel = nullptr;  // raised by stop(), to end network requests of the work
    // Called in the thread for each failed run, unless the task is being stopped.
    std::function<void(const Error& error, Milliseconds retry_in)> on_error = {};
  };

  BackgroundTask(Options options, Work work);
  ~BackgroundTask();  // stop()
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // Starts the thread. An owner calls it when all members that the work uses exist.
  void start();
  // Ends a wait at once, waits for the end of a run, and for the thread. The thread itself must not
  // call it. Does nothing if the task was not started or is stopped.
  void stop();
  // Another run comes, also if one is in progress; several calls before that run cause only one.
  void wake();
  // For the next wait and those after it.
  void set_period(std::optional<Milliseconds> period);

 private:
  void run(const std::stop_token& stop);
  void wait(const std::stop_token& stop, std::optional<Milliseconds> at_most, WakePolicy wakes);

  Options options_;
  const Work work_;
  std::mutex mutex_;  // protects the period and the flag
  std::condition_variable_any changed_;
  bool woken_ = false;
  std::jthread thread_;
};

}  // namespace gantry::sys
