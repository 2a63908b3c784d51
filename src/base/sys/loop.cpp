// SPDX-License-Identifier: Apache-2.0
#include "base/sys/loop.hpp"

#include "base/core/clock.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gantry::sys {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kWake = 0;  // the id of the eventfd; never used for a watch
constexpr std::size_t kEventsPerTurn = 64;
constexpr milliseconds kLongPeriod{500};
constexpr milliseconds kEarliest{500};  // how much too early a periodic timer may be called at most

// How much too early a timer may be called, so that one wake-up serves several.
milliseconds early_by(milliseconds period) {
  return period < kLongPeriod ? milliseconds{0} : std::min(period / 10, kEarliest);
}

}  // namespace

struct Loop::State {
  struct WatchedDescriptor {
    int fd = -1;
    std::shared_ptr<const OnReady> callback;  // shared: it may remove itself while it runs
  };
  struct TimerEntry {
    milliseconds period{0};  // 0: once
    std::shared_ptr<const Callback> callback;
  };
  using Moment = std::pair<Clock::time_point, std::uint64_t>;

  UniqueFd epoll;
  UniqueFd wake;
  std::uint64_t last_id = kWake;  // never used twice: an old event matches no watch
  std::unordered_map<std::uint64_t, WatchedDescriptor> watched;
  std::unordered_map<std::uint64_t, Moment> moments;  // of each timer
  std::map<Moment, TimerEntry> timers;                // by time
  Clock::time_point awake_until = Clock::time_point::min();
  std::atomic<bool> stopping = false;
  std::mutex mutex;  // protects only `posted`
  std::vector<Callback> posted;

  void remove_watch(std::uint64_t id) {
    const auto found = watched.find(id);
    if (found == watched.end()) return;
    ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    watched.erase(found);
  }

  void remove_timer(std::uint64_t id) {
    const auto found = moments.find(id);
    if (found == moments.end()) return;
    timers.erase(found->second);
    moments.erase(found);
  }

  void add_timer(std::uint64_t id, Clock::time_point at, TimerEntry due) {
    moments[id] = Moment{at, id};
    timers.emplace(Moment{at, id}, std::move(due));
  }

  int timeout(milliseconds at_most) const {
    if (awake_until != Clock::time_point::min() && Clock::now() < awake_until) return 0;
    auto wait = at_most;
    if (!timers.empty()) {
      const auto left = std::chrono::ceil<milliseconds>(timers.begin()->first.first - Clock::now());
      wait = std::min(wait, left);
    }
    return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 3'600'000));
  }

  // The timers to call now: those that are due, and with them the periodic ones that would be due
  // soon. Each wake-up costs more than the work of most timers, and after one common call they
  // stay together.
  std::vector<Moment> due_timers(Clock::time_point now) const {
    std::vector<Moment> due;
    if (timers.empty() || timers.begin()->first.first > now) return due;
    for (const auto& [moment, entry] : timers) {
      if (moment.first - early_by(entry.period) <= now) due.push_back(moment);
      if (moment.first - kEarliest > now) break;
    }
    return due;
  }

  void call_due() {
    const auto now = Clock::now();
    for (const auto& [at, id] : due_timers(now)) {
      const auto found = timers.find({at, id});
      if (found == timers.end()) continue;  // cancelled by an earlier one of this turn
      const TimerEntry due = found->second;
      remove_timer(id);
      // The period counts from now, not from the due time: after a pause there is one call, not a
      // burst.
      if (due.period.count() > 0) add_timer(id, now + due.period, due);
      (*due.callback)();
    }
  }

  void call_posted() {
    std::uint64_t count = 0;
    while (::read(wake.get(), &count, sizeof count) < 0 && errno == EINTR) {
    }
    std::vector<Callback> work;
    {
      const std::lock_guard lock(mutex);
      work.swap(posted);
    }
    for (const auto& callback : work) callback();
  }

  void call_ready(const epoll_event& event) {
    const std::uint64_t id = event.data.u64;  // epoll_event is packed: no reference into it
    if (id == kWake) return call_posted();
    const auto found = watched.find(id);
    if (found == watched.end()) return;  // removed earlier in this turn
    const auto callback = found->second.callback;
    (*callback)(event.events);
  }

  void wake_up() const {
    const std::uint64_t one = 1;
    while (::write(wake.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
};

Loop::Watch::Watch(Watch&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

Loop::Watch& Loop::Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  id_ = std::exchange(other.id_, 0);
  return *this;
}

void Loop::Watch::wait_for(std::uint32_t events) {
  const auto state = state_.lock();
  if (!state) return;
  const auto found = state->watched.find(id_);
  if (found == state->watched.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id_;
  ::epoll_ctl(state->epoll.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void Loop::Watch::cancel() {
  const auto id = std::exchange(id_, 0);
  if (id == 0) return;
  if (const auto state = state_.lock()) state->remove_watch(id);
}

Loop::Timer::Timer(Timer&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

Loop::Timer& Loop::Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  id_ = std::exchange(other.id_, 0);
  return *this;
}

void Loop::Timer::cancel() {
  const auto id = std::exchange(id_, 0);
  if (id == 0) return;
  if (const auto state = state_.lock()) state->remove_timer(id);
}

Loop::~Loop() = default;

Result<std::unique_ptr<Loop>> Loop::make() {
  auto state = std::make_shared<State>();
  state->epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->epoll.valid()) return Error::sys(errno, "epoll_create1");
  state->wake = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->wake.valid()) return Error::sys(errno, "eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWake;
  if (::epoll_ctl(state->epoll.get(), EPOLL_CTL_ADD, state->wake.get(), &event) != 0) {
    return Error::sys(errno, "epoll_ctl");
  }
  return std::unique_ptr<Loop>(new Loop(std::move(state)));
}

Result<Loop::Watch> Loop::watch(int fd, std::uint32_t events, OnReady callback) {
  const auto id = ++state_->last_id;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Error::sys(errno, "epoll_ctl");
  }
  state_->watched.emplace(
      id, State::WatchedDescriptor{fd, std::make_shared<const OnReady>(std::move(callback))});
  return Watch(state_, id);
}

Loop::Timer Loop::timer(milliseconds delay, milliseconds period, Callback callback) {
  const auto id = ++state_->last_id;
  state_->add_timer(id, Clock::now() + delay,
                    {period, std::make_shared<const Callback>(std::move(callback))});
  return {state_, id};
}

Loop::Timer Loop::after(milliseconds delay, Callback callback) {
  return timer(delay, milliseconds{0}, std::move(callback));
}

Loop::Timer Loop::every(milliseconds period, Callback callback) {
  const auto real = std::max(period, milliseconds{1});
  return timer(real, real, std::move(callback));
}

void Loop::busy_poll_until(Clock::time_point until) {
  state_->awake_until = until;
}

void Loop::post(Callback callback) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->posted.push_back(std::move(callback));
  }
  state_->wake_up();
}

Result<bool> Loop::turn(milliseconds at_most) {
  const auto state = state_;  // a callback may destroy the loop's owner
  if (state->stopping) return false;
  std::array<epoll_event, kEventsPerTurn> events{};
  const int ready = ::epoll_wait(state->epoll.get(), events.data(), static_cast<int>(events.size()),
                                 state->timeout(at_most));
  if (ready < 0 && errno != EINTR) return Error::sys(errno, "epoll_wait");
  state->call_due();
  for (int i = 0; i < ready; ++i) state->call_ready(events.at(static_cast<std::size_t>(i)));
  return !state->stopping;
}

Status Loop::run() {
  for (;;) {
    GANTRY_TRY(const bool more, turn(milliseconds{3'600'000}));
    if (!more) return {};
  }
}

void Loop::stop() {
  state_->stopping = true;
  state_->wake_up();
}

}  // namespace gantry::sys
