// SPDX-License-Identifier: Apache-2.0
// Which readings the daemon uses, with a real NVML child process on a simulated machine.
#include "sharing/daemon/gpu_watcher.hpp"

#include "sim/machine/inject.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

namespace gantry::daemon {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::Each;
using ::testing::SizeIs;

class OnMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    nvml_child::NvmlChildOptions options;
    options.event_wait = 200ms;
    auto opened = GpuWatcher::open(*loop_, host_, std::move(options), log_,
                                   {.machine = [] {},
                                    .asking = [this] { ++asked_; },
                                    .picture =
                                        [this](const auto&, ReadingScope at) {
                                          pictures_.push_back(at);
                                          shown_();
                                        }});
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    watcher_ = *std::move(opened);
    ASSERT_TRUE(turn_until([&] { return !watcher_->cards().empty(); }));
  }
  bool turn_until(const std::function<bool()>& so, Clock::duration within = 20s) {
    const auto end = Clock::now() + within;
    while (!so() && Clock::now() < end) EXPECT_TRUE(loop_->turn(10ms).ok());
    return so();
  }
  bool one_more_picture() {
    const auto before = pictures_.size();
    watcher_->look();
    return turn_until([&] { return pictures_.size() > before; });
  }

  test::Machine machine_{"h200x8"};
  sys::Host host_ = machine_.host();
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  Log log_{LogForm::Json, 0, [](std::string_view) {}};
  std::unique_ptr<GpuWatcher> watcher_;
  std::size_t asked_ = 0;
  std::vector<ReadingScope> pictures_;
  std::function<void()> shown_ = [] {};  // while a reading is delivered
};

// A tenant can cause an Xid at any time. The readings that follow have no processes at all.
TEST_F(OnMachine, WhatFollowsAnXidIsNoPicture) {
  ASSERT_TRUE(one_more_picture());
  ASSERT_TRUE(sim::inject_xid(machine_.root(), 3, 31).ok());
  EXPECT_FALSE(turn_until([&] { return pictures_.size() > asked_; }, 1s));
  EXPECT_TRUE(one_more_picture()) << "and it can look again";
  EXPECT_EQ(pictures_.size(), asked_);
}

// Two shares are compared with one reading, and the first requests another one. The notes for the
// second must not change.
TEST_F(OnMachine, ALookThatAPictureCausesBeginsAfterThatPicture) {
  shown_ = [this] {
    std::this_thread::sleep_for(25ms);  // the next reading is not too early
    const auto before = asked_;
    watcher_->look();
    EXPECT_EQ(asked_, before);
  };
  watcher_->look();
  EXPECT_TRUE(turn_until([&] { return pictures_.size() > 2; })) << "but it does begin";
}

TEST_F(OnMachine, LooksAtTimeOnlyRegularly) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(one_more_picture());
  EXPECT_THAT(pictures_, Each(ReadingScope::MemoryOnly));
  watcher_->poll_every(30ms);
  EXPECT_TRUE(turn_until([&] {
    return std::count(pictures_.begin(), pictures_.end(), ReadingScope::Everything) > 1;
  }));
}

TEST_F(OnMachine, WhoWantsManyLooksDoesNotKeepItFromRegularOnes) {
  watcher_->poll_every(50ms);
  const auto end = Clock::now() + 500ms;
  EXPECT_TRUE(turn_until([&] {
    watcher_->look();
    return Clock::now() > end;
  }));
  EXPECT_THAT(pictures_, Contains(ReadingScope::Everything));
  EXPECT_LE(pictures_.size(), 52U) << "never more than 100 in a second";
}

}  // namespace
}  // namespace gantry::daemon
