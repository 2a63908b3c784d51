// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/background_closer.hpp"

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace gantry::daemon {

// The thread shares ownership, because a blocked thread may outlive the share.
struct BackgroundCloser::State {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<sys::UniqueFd> waiting;
  std::atomic<std::size_t> open = 0;
  bool started = false;
  bool ended = false;

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      more.wait(lock, [this] { return ended || !waiting.empty(); });
      if (waiting.empty()) return;
      auto fd = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      fd.reset();
      --open;
      lock.lock();
    }
  }
};

namespace {

// The daemon's main thread receives signals, through a descriptor.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

BackgroundCloser::BackgroundCloser() : state_(std::make_shared<State>()) {}

BackgroundCloser::~BackgroundCloser() {
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->more.notify_one();
}

void BackgroundCloser::close(sys::UniqueFd fd) {
  if (!fd.valid()) return;
  const std::lock_guard lock(state_->mutex);
  if (!state_->started) {
    const NoSignals none;
    try {
      std::thread([state = state_] { state->work(); }).detach();
      state_->started = true;
    } catch (const std::system_error&) {
      // No thread can be created now; the next call tries again.
    }
  }
  ++state_->open;
  state_->waiting.push_back(std::move(fd));
  state_->more.notify_one();
}

std::size_t BackgroundCloser::open() const {
  return state_->open;
}

}  // namespace gantry::daemon
