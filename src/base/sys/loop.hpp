// SPDX-License-Identifier: Apache-2.0
// One thread that waits for descriptors, timers and work from other threads, and calls back. All
// state that callbacks touch belongs to that thread, so none of it needs a lock. A callback must
// not block: while it runs, nothing else does.
#pragma once

#include "base/core/result.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace gantry::sys {

class Loop {
  struct State;

 public:
  using Callback = std::function<void()>;
  using OnReady = std::function<void(std::uint32_t events)>;  // EPOLLIN | ...

  // The destructor ends the watch. After that the callback is never called, not even for an event
  // that was already pending. It may be destroyed inside any callback, including its own, and may
  // outlive the loop.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept;
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { cancel(); }
    void wait_for(std::uint32_t events);  // changes the events to wait for
    void cancel();                        // before the descriptor is closed
    bool active() const { return id_ != 0; }

   private:
    friend class Loop;
    Watch(std::weak_ptr<State> state, std::uint64_t id) : state_(std::move(state)), id_(id) {}
    std::weak_ptr<State> state_;
    std::uint64_t id_ = 0;
  };

  class Timer {
   public:
    Timer() = default;
    Timer(Timer&& other) noexcept;
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { cancel(); }
    void cancel();

   private:
    friend class Loop;
    Timer(std::weak_ptr<State> state, std::uint64_t id) : state_(std::move(state)), id_(id) {}
    std::weak_ptr<State> state_;
    std::uint64_t id_ = 0;
  };

  static Result<std::unique_ptr<Loop>> make();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Result<Watch> watch(int fd, std::uint32_t events, OnReady callback);
  [[nodiscard]] Timer after(std::chrono::milliseconds delay, Callback callback);
  [[nodiscard]] Timer every(std::chrono::milliseconds period, Callback callback);  // 10 % early

  // Polls without sleeping until that time. A wake-up costs both sides tens of microseconds. A time
  // in the past ends the polling.
  void busy_poll_until(std::chrono::steady_clock::time_point until);

  // May be called from any thread. The loop calls the callbacks later, in the order of posting.
  void post(Callback callback);

  // Runs until stop(). If stop() was called before, it returns at once.
  Status run();
  // Waits once, for `at_most`, and runs the callbacks that are due. Returns false if stop() was
  // called.
  Result<bool> turn(std::chrono::milliseconds at_most);
  // From any thread.
  void stop();

 private:
  explicit Loop(std::shared_ptr<State> state) : state_(std::move(state)) {}
  [[nodiscard]] Timer timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                            Callback callback);
  std::shared_ptr<State> state_;
};

}  // namespace gantry::sys
