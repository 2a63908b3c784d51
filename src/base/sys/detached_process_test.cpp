// SPDX-License-Identifier: Apache-2.0
#include "base/sys/detached_process.hpp"

#include "base/sys/child.hpp"
#include "base/sys/deadline_call.hpp"
#include "base/sys/deadline_read.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(DetachedProcess, IsNoChildOfOurs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  const auto process = start_detached([&] {
    const pid_t self = ::getpid();
    if (::write(theirs.get(), &self, sizeof self) < 0) return;
  });
  ASSERT_TRUE(process.ok()) << process.error().text();
  pid_t told = 0;
  ASSERT_EQ(::read(mine.get(), &told, sizeof told), static_cast<ssize_t>(sizeof told));
  EXPECT_EQ(told, *process);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(DetachedProcess, IsReachedByNoSignalThatATerminalSends) {
  const auto outcome = call_with_deadline(
      [](int) {
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::raise(number);
        return CallOutcome{1, 0};
      },
      -1, 10s, "the call");
  EXPECT_TRUE(outcome.ok());
}

// What start_detached and its two users say if a user may have `processes` processes.
std::string with_limit(rlim_t processes) {
  const auto work = [&]() -> std::string {
    const rlimit limit{.rlim_cur = processes, .rlim_max = processes};
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0) return "no limit";
    const auto errno_of = [](const auto& result) {
      return result.ok() ? 0 : result.error().sys_errno();
    };
    const auto host = Host::at("/");
    return fmt::format(
        "{} {} {}", errno_of(start_detached([] {})),
        errno_of(call_with_deadline([](int) { return CallOutcome{}; }, -1, 10s, "x")),
        errno_of(read_with_deadline(*host, "/proc/version", 10s)));
  };
  const ChildUser user{.uid = 61235, .gid = 61235};
  const auto told = run_in_child(work, {.user = &user});
  return told.ok() ? *told : told.error().text();
}

TEST(DetachedProcess, EveryFailedForkIsReportedInTheSameWay) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "needs root: the limit counts the processes of another user";
  const auto failed = fmt::format("{0} {0} {0}", EAGAIN);
  EXPECT_EQ(with_limit(1), failed) << "the process in between";
  EXPECT_EQ(with_limit(2), failed) << "the process itself";
}

TEST(LateReason, IsReadFromTheStateAndTheTimeOfTheProcessor) {
  const auto stat = [](std::string_view state, long ticks) {
    return fmt::format("71 (a ) D b) {} 1 71 71 0 -1 4194560 0 0 0 0 {} 0 0 0 20 0\n", state,
                       ticks);
  };
  const long second = ::sysconf(_SC_CLK_TCK);
  EXPECT_EQ(late_reason(stat("D", 0), 2s), LateReason::InKernel);
  EXPECT_EQ(late_reason(stat("S", 0), 2s), LateReason::InKernel);
  EXPECT_EQ(late_reason(stat("R", 0), 2s), LateReason::NotRunning);
  EXPECT_EQ(late_reason(stat("R", 2 * second), 2s), LateReason::InKernel) << "it computes there";
  EXPECT_EQ(late_reason(stat("T", 0), 2s), LateReason::NotRunning);
  EXPECT_EQ(late_reason("", 2s), LateReason::InKernel);
  EXPECT_EQ(late_reason("nonsense", 2s), LateReason::InKernel);
}

// As on a machine that was paused for the whole deadline.
TEST(LateReason, ProcessThatDidNotGetToRunIsNotCalledStuck) {
  const auto outcome = call_with_deadline(
      [](int) {
        ::raise(SIGSTOP);
        return CallOutcome{};
      },
      -1, 200ms, "the write to /sys/x");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::Timeout);
  EXPECT_THAT(outcome.error().text(),
              HasSubstr("the write to /sys/x did not return within 400 ms: its process did not get "
                        "to run"));
  const auto remedy = outcome.error().remedy();
  const auto pid = std::atoi(remedy.substr(remedy.find("/proc/") + 6).c_str());
  ASSERT_GT(pid, 1);
  EXPECT_EQ(::kill(pid, SIGKILL), 0);
}

TEST(LateReason, ProcessThatGetsToRunLateAnswers) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  // Stops itself; this process continues it after the deadline.
  const pid_t waker = ::fork();
  if (waker == 0) {
    pid_t stopped = 0;
    if (::read(read_end.get(), &stopped, sizeof stopped) > 0) {
      ::usleep(1'200'000);
      ::kill(stopped, SIGCONT);
    }
    ::_exit(0);
  }
  const auto outcome = call_with_deadline(
      [](int pipe) {
        const pid_t self = ::getpid();
        if (::write(pipe, &self, sizeof self) < 0) return CallOutcome{};
        ::raise(SIGSTOP);
        return CallOutcome{7, 0};
      },
      write_end.get(), 1s, "the call");
  ::waitpid(waker, nullptr, 0);
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->step, 7);
}

}  // namespace
}  // namespace gantry::sys
