// SPDX-License-Identifier: Apache-2.0
#include "base/sys/background_task.hpp"

#include <pthread.h>

#include <algorithm>
#include <random>
#include <utility>

namespace gantry::sys {
namespace {

constexpr std::size_t kThreadNameLimit = 15;  // pthread_setname_np(3)

// 80 to 120 percent: after an outage, the agents of a thousand nodes do not all ask at once.
BackgroundTask::Milliseconds jittered(BackgroundTask::Milliseconds pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> factor(0.8, 1.2);
  return std::chrono::duration_cast<BackgroundTask::Milliseconds>(pause * factor(random));
}

}  // namespace

BackgroundTask::BackgroundTask(Options options, Work work)
    : options_(std::move(options)), work_(std::move(work)) {}

BackgroundTask::~BackgroundTask() {
  stop();
}

void BackgroundTask::start() {
  GANTRY_ASSERT(!thread_.joinable());
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void BackgroundTask::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();  // before `cancel`: an error that it causes is not reported
  if (options_.cancel != nullptr) options_.cancel->raise();
  thread_.join();
}

void BackgroundTask::wake() {
  const std::lock_guard hold(mutex_);
  woken_ = true;
  changed_.notify_one();
}

void BackgroundTask::set_period(std::optional<Milliseconds> period) {
  const std::lock_guard hold(mutex_);
  options_.period = period;
}

void BackgroundTask::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), options_.name.substr(0, kThreadNameLimit).c_str());
  const auto period = [this] {
    const std::lock_guard hold(mutex_);
    return options_.period;
  };
  auto pause = options_.retry.first;
  if (options_.first_run == FirstRun::AfterPeriod) wait(stop, period(), WakePolicy::Honored);
  while (!stop.stop_requested()) {
    {
      const std::lock_guard hold(mutex_);
      woken_ = false;  // before the run: what is new during the run may come too late for it
    }
    const auto done = work_(stop);
    if (stop.stop_requested()) return;
    if (done.ok()) {
      pause = options_.retry.first;
      wait(stop, period(), WakePolicy::Honored);
    } else {
      const auto retry_in = jittered(pause);
      if (options_.on_error) options_.on_error(done.error(), retry_in);
      wait(stop, retry_in, options_.retry.wakes);
      pause = std::min(2 * pause, options_.retry.max);
    }
  }
}

void BackgroundTask::wait(const std::stop_token& stop, std::optional<Milliseconds> at_most,
                          WakePolicy wakes) {
  const auto over = [&] { return woken_ && wakes == WakePolicy::Honored; };
  std::unique_lock hold(mutex_);
  if (at_most) {
    changed_.wait_for(hold, stop, *at_most, over);
  } else {
    changed_.wait(hold, stop, over);
  }
}

}  // namespace gantry::sys
