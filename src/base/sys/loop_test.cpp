// SPDX-License-Identifier: Apache-2.0
#include "base/sys/loop.hpp"

#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <gmock/gmock.h>

#include <array>
#include <thread>
#include <vector>

namespace gantry::sys {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    in = UniqueFd(ends[0]);
    out = UniqueFd(ends[1]);
  }
  void put() const { EXPECT_EQ(::write(out.get(), "x", 1), 1); }
  UniqueFd in;
  UniqueFd out;
};

std::unique_ptr<Loop> make_loop() {
  return *Loop::make();
}

TEST(Loop, CallsBackWhenADescriptorIsReadable) {
  const auto loop = make_loop();
  const Pipe pipe;
  int calls = 0;
  const auto watch = loop->watch(pipe.in.get(), EPOLLIN, [&](std::uint32_t events) {
    EXPECT_TRUE((events & EPOLLIN) != 0);
    ++calls;
    loop->stop();
  });
  ASSERT_TRUE(watch.ok());
  pipe.put();
  ASSERT_TRUE(loop->run().ok());
  EXPECT_EQ(calls, 1);
}

TEST(Loop, AWatchThatEndedHearsNothingEvenOfEventsAlreadyThere) {
  const auto loop = make_loop();
  const Pipe one;
  const Pipe two;
  std::vector<Loop::Watch> watches;
  int calls = 0;
  // The first callback ends both watches, including its own.
  for (const auto* pipe : {&one, &two}) {
    watches.push_back(*loop->watch(pipe->in.get(), EPOLLIN, [&](std::uint32_t) {
      ++calls;
      watches.clear();
    }));
  }
  one.put();
  two.put();
  ASSERT_TRUE(loop->turn(milliseconds{100}).ok());
  ASSERT_TRUE(loop->turn(milliseconds{0}).ok());
  EXPECT_EQ(calls, 1);
}

TEST(Loop, TimersComeInTheOrderOfTheirTimes) {
  const auto loop = make_loop();
  std::vector<int> order;
  const auto late = loop->after(milliseconds{20}, [&] {
    order.push_back(2);
    loop->stop();
  });
  const auto early = loop->after(milliseconds{5}, [&] { order.push_back(1); });
  auto never = loop->after(milliseconds{10}, [&] { order.push_back(99); });
  never.cancel();
  ASSERT_TRUE(loop->run().ok());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(Loop, ARepeatedTimerEndsItselfInItsCallback) {
  const auto loop = make_loop();
  int calls = 0;
  Loop::Timer timer = loop->every(milliseconds{1}, [&] {
    if (++calls == 3) timer.cancel();
  });
  const auto end = loop->after(milliseconds{30}, [&] { loop->stop(); });
  ASSERT_TRUE(loop->run().ok());
  EXPECT_EQ(calls, 3);
}

TEST(Loop, PeriodicTimersThatAreDueAtAboutTheSameTimeShareAWakeUp) {
  const auto loop = make_loop();
  std::vector<int> turns;  // in which turn each was called
  int turn = 0;
  const auto first = loop->every(milliseconds{500}, [&] { turns.push_back(turn); });
  const auto once = loop->after(milliseconds{530}, [&] { turns.push_back(turn); });
  std::this_thread::sleep_for(milliseconds{20});
  const auto second = loop->every(milliseconds{500}, [&] { turns.push_back(turn); });
  while (turns.size() < 5) {
    ++turn;
    ASSERT_TRUE(loop->turn(milliseconds{2000}).ok());
  }
  ASSERT_EQ(turns.size(), 5U);
  EXPECT_EQ(turns[0], turns[1]) << "the second was called with the first, 20 ms early";
  EXPECT_LT(turns[1], turns[2]) << "a timer that is called once is never early";
  EXPECT_EQ(turns[3], turns[4]) << "and from then on they stay together";
}

TEST(Loop, WorkOfOtherThreadsIsDoneInTheLoopInOrder) {
  const auto loop = make_loop();
  const auto here = std::this_thread::get_id();
  std::vector<int> order;
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) {
      loop->post([&, i] {
        EXPECT_EQ(std::this_thread::get_id(), here);
        order.push_back(i);
      });
    }
    loop->post([&] { loop->stop(); });
  });
  ASSERT_TRUE(loop->run().ok());
  other.join();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(Loop, AStopFromAnotherThreadEndsAnIdleLoop) {
  const auto loop = make_loop();
  std::thread other([&] { loop->stop(); });
  EXPECT_TRUE(loop->run().ok());
  other.join();
}

TEST(Loop, StaysAwakeForTheGivenTime) {
  const auto loop = *Loop::make();
  const auto begun = std::chrono::steady_clock::now();
  loop->busy_poll_until(begun + milliseconds(30));
  int turns = 0;
  for (; std::chrono::steady_clock::now() < begun + milliseconds(30); ++turns)
    ASSERT_TRUE(loop->turn(milliseconds(10000)).ok());
  EXPECT_GT(turns, 1) << "it did not wait for anything";
  const auto asleep = std::chrono::steady_clock::now();
  ASSERT_TRUE(loop->turn(milliseconds(20)).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - asleep, milliseconds(19));
}

TEST(Loop, HandlesMayOutliveTheLoop) {
  auto loop = make_loop();
  const Pipe pipe;
  auto watch = *loop->watch(pipe.in.get(), EPOLLIN, [](std::uint32_t) {});
  auto timer = loop->after(milliseconds{1}, [] {});
  loop.reset();
  watch.wait_for(EPOLLOUT);
  watch.cancel();
  timer.cancel();
}

}  // namespace
}  // namespace gantry::sys
