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

  // Ends with its owner: after that the callback is not called any more, not even for an event that
  // was already there. May end inside any callback, its own too. May outlive the loop.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept;
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { cancel(); }
    void wait_for(std::uint32_t events);  // other events from now on
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
  [[nodiscard]] Timer every(std::chrono::milliseconds period, Callback callback);

  // Until then the loop asks again and again instead of sleeping: who is woken comes tens of
  // microseconds later, and pays for it as much as who wakes. In the past: not any more.
  void busy_poll_until(std::chrono::steady_clock::time_point until);

  // From any thread: called later, in the loop, in the order of posting.
  void post(Callback callback);

  // Until stop(). A stop() before run() counts.
  Status run();
  // Waits once, `at_most` so long, and calls what is due. False when stop() was called.
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
