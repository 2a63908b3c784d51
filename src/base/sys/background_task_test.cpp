// SPDX-License-Identifier: Apache-2.0
#include "base/sys/background_task.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <semaphore>
#include <set>
#include <vector>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;
using Clock = std::chrono::steady_clock;

constexpr auto kLong = 60s;  // a test that waits that long has failed

TEST(BackgroundTask, StopsAtOnceWhileItWaits) {
  for (const std::optional<BackgroundTask::Milliseconds> period :
       {std::optional<BackgroundTask::Milliseconds>(1h), {}}) {
    std::counting_semaphore<> ran(0);
    BackgroundTask task({.name = "waits", .period = period}, [&](const std::stop_token&) -> Status {
      ran.release();
      return {};
    });
    task.start();
    ASSERT_TRUE(ran.try_acquire_for(kLong));
    const auto begin = Clock::now();
    task.stop();
    EXPECT_LT(Clock::now() - begin, 10s);
    EXPECT_FALSE(ran.try_acquire());
  }
}

TEST(BackgroundTask, StopsAtOnceInThePauseAfterAFailure) {
  std::promise<void> failed;
  BackgroundTask task({.name = "fails",
                       .retry = {.first = 1h, .max = 1h},
                       .on_error = [&](const Error&, auto) { failed.set_value(); }},
                      [](const std::stop_token&) -> Status { return Error(Errc::Busy, "no"); });
  task.start();
  ASSERT_EQ(failed.get_future().wait_for(kLong), std::future_status::ready);
  const auto begin = Clock::now();
  task.stop();
  EXPECT_LT(Clock::now() - begin, 10s);
}

TEST(BackgroundTask, EndsARunThatListensToTheStopTokenAndReportsNoError) {
  std::promise<void> began;
  bool reported = false;
  BackgroundTask task(
      {.name = "long run", .on_error = [&](const Error&, auto) { reported = true; }},
      [&](const std::stop_token& stop) -> Status {
        began.set_value();
        while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
        return Error(Errc::Timeout, "asked to stop");
      });
  task.start();
  ASSERT_EQ(began.get_future().wait_for(kLong), std::future_status::ready);
  task.stop();
  EXPECT_FALSE(reported);
}

TEST(BackgroundTask, CancelsWhatARunWaitsForAndDoesNotReportThat) {
  StopSignal cancel;
  std::promise<void> began;
  bool reported = false;
  BackgroundTask task({.name = "request",
                       .cancel = &cancel,
                       .on_error = [&](const Error&, auto) { reported = true; }},
                      [&](const std::stop_token&) -> Status {
                        began.set_value();
                        if (cancel.sleep(kLong)) return {};
                        return Error(Errc::Timeout, "canceled");
                      });
  task.start();
  ASSERT_EQ(began.get_future().wait_for(kLong), std::future_status::ready);
  const auto begin = Clock::now();
  task.stop();
  EXPECT_LT(Clock::now() - begin, 10s);
  EXPECT_FALSE(reported);
}

TEST(BackgroundTask, AWakeDuringARunCausesOneMoreRun) {
  std::counting_semaphore<> entered(0);
  std::counting_semaphore<> leave(0);
  BackgroundTask task({.name = "woken"}, [&](const std::stop_token&) -> Status {
    entered.release();
    leave.acquire();
    return {};
  });
  task.start();
  ASSERT_TRUE(entered.try_acquire_for(kLong));
  task.wake();
  task.wake();
  leave.release();
  EXPECT_TRUE(entered.try_acquire_for(kLong));  // the second run
  leave.release();
  EXPECT_FALSE(entered.try_acquire_for(50ms));  // and no third one
  leave.release();
}

TEST(BackgroundTask, AWakeOfTheWorkItselfCausesAnotherRun) {
  std::atomic<int> runs = 0;
  std::promise<void> third;
  BackgroundTask* self = nullptr;
  BackgroundTask task({.name = "self"}, [&](const std::stop_token&) -> Status {
    if (++runs == 3) {
      third.set_value();
    } else {
      self->wake();
    }
    return {};
  });
  self = &task;
  task.start();
  EXPECT_EQ(third.get_future().wait_for(kLong), std::future_status::ready);
}

TEST(BackgroundTask, RunsAgainAfterEachPeriod) {
  std::counting_semaphore<> ran(0);
  BackgroundTask task({.name = "period", .period = 10ms}, [&](const std::stop_token&) -> Status {
    ran.release();
    return {};
  });
  const auto begin = Clock::now();
  task.start();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ran.try_acquire_for(kLong));
  EXPECT_GE(Clock::now() - begin, 30ms);
}

TEST(BackgroundTask, MayWaitAPeriodBeforeTheFirstRunAndCanBeWokenFromThat) {
  std::counting_semaphore<> ran(0);
  BackgroundTask task(
      {.name = "later", .period = 1h, .first_run = BackgroundTask::FirstRun::AfterPeriod},
      [&](const std::stop_token&) -> Status {
        ran.release();
        return {};
      });
  task.start();
  EXPECT_FALSE(ran.try_acquire_for(50ms));
  task.wake();
  EXPECT_TRUE(ran.try_acquire_for(kLong));
}

TEST(BackgroundTask, ANewPeriodCountsFromTheNextWaitOn) {
  std::counting_semaphore<> ran(0);
  BackgroundTask task({.name = "new period"}, [&](const std::stop_token&) -> Status {
    ran.release();
    return {};
  });
  task.start();
  ASSERT_TRUE(ran.try_acquire_for(kLong));
  task.set_period(1ms);
  task.wake();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ran.try_acquire_for(kLong));
}

TEST(BackgroundTask, ReportsEachFailureWithAPauseThatDoublesUntilARunSucceeds) {
  std::vector<std::int64_t> pauses;
  std::promise<void> done;
  BackgroundTask* self = nullptr;
  int runs = 0;
  BackgroundTask task({.name = "retry",
                       .retry = {.first = 10ms, .max = 30ms},
                       .on_error =
                           [&](const Error& error, BackgroundTask::Milliseconds pause) {
                             EXPECT_EQ(error.text(), "no");
                             pauses.push_back(pause.count());
                           }},
                      [&](const std::stop_token&) -> Status {
                        ++runs;
                        if (runs == 4) {
                          self->wake();
                          return {};
                        }
                        if (runs == 6) {
                          done.set_value();
                          return {};
                        }
                        return Error(Errc::Busy, "no");
                      });
  self = &task;
  task.start();
  ASSERT_EQ(done.get_future().wait_for(kLong), std::future_status::ready);
  task.stop();
  const auto about = [](std::int64_t ms) { return AllOf(Ge(ms * 8 / 10), Le(ms * 12 / 10)); };
  EXPECT_THAT(pauses, ElementsAre(about(10), about(20), about(30), about(10)));
}

// A thousand nodes whose API server comes back must not all ask it at the same moment.
TEST(BackgroundTask, DoesNotRetryInStepWithOthers) {
  std::set<std::int64_t> pauses;
  for (int i = 0; i < 8; ++i) {
    std::promise<std::int64_t> told;
    BackgroundTask task(
        {.name = "jitter",
         .retry = {.first = 1h, .max = 1h},
         .on_error = [&](const Error&, auto pause) { told.set_value(pause.count()); }},
        [](const std::stop_token&) -> Status { return Error(Errc::Busy, "no"); });
    task.start();
    pauses.insert(told.get_future().get());
  }
  EXPECT_GT(pauses.size(), 6U);
}

TEST(BackgroundTask, AWakeShortensThePauseAfterAFailureOnlyIfAsked) {
  using WakePolicy = BackgroundTask::WakePolicy;
  for (const auto wakes : {WakePolicy::Honored, WakePolicy::Deferred}) {
    std::counting_semaphore<> ran(0);
    BackgroundTask task({.name = "pause", .retry = {.first = 1h, .max = 1h, .wakes = wakes}},
                        [&](const std::stop_token&) -> Status {
                          ran.release();
                          return Error(Errc::Busy, "no");
                        });
    task.start();
    ASSERT_TRUE(ran.try_acquire_for(kLong));
    task.wake();
    EXPECT_EQ(ran.try_acquire_for(wakes == WakePolicy::Honored ? kLong : 50ms),
              wakes == WakePolicy::Honored);
  }
}

TEST(BackgroundTask, CanBeWokenAndStoppedBeforeItStarts) {
  int runs = 0;
  BackgroundTask task({.name = "never"}, [&](const std::stop_token&) -> Status {
    ++runs;
    return {};
  });
  task.wake();
  task.stop();
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace gantry::sys
