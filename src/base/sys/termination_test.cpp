// SPDX-License-Identifier: Apache-2.0
#include "base/sys/termination.hpp"

#include "base/sys/child.hpp"
#include "base/sys/socket_wait.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;

// In a process of its own: its exit status, or 128 + the signal that killed it.
int run_apart(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(STDERR_FILENO);
    ::_exit(work());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Termination, IsNotRequestedAtFirst) {
  const Termination termination;
  EXPECT_FALSE(termination.requested());
  EXPECT_TRUE(termination.check().ok());
  EXPECT_FALSE(is_readable(termination.fd()));
}

TEST(Termination, TellsTheFirstSignal) {
  Termination termination;
  termination.request(SIGTERM);
  termination.request(SIGINT);
  EXPECT_EQ(termination.signal(), SIGTERM);
  EXPECT_TRUE(is_readable(termination.fd()));
  ASSERT_FALSE(termination.check().ok());
  EXPECT_EQ(termination.check().error().text(), "stopped by SIGTERM");
}

TEST(Termination, FirstSignalIsARequestAndTheSecondEnds) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(run_apart([&] {
                const CaughtTermination caught;
                ::raise(number);
                return caught.termination().signal() == number ? 7 : 8;
              }),
              7);
    EXPECT_EQ(run_apart([&] {
                const CaughtTermination caught;
                ::raise(number);
                ::raise(SIGTERM);
                return 8;
              }),
              128 + SIGTERM);
  }
}

TEST(Termination, IgnoredSignalStaysIgnored) {
  EXPECT_EQ(run_apart([] {
              ::signal(SIGHUP, SIG_IGN);
              const CaughtTermination caught;
              ::raise(SIGHUP);
              return caught.termination().requested() ? 8 : 7;
            }),
            7);
}

TEST(Termination, ForkedChildIsEndedByTheFirstSignal) {
  EXPECT_EQ(run_apart([] {
              const CaughtTermination caught;
              const int child = run_apart([] {
                ::raise(SIGTERM);
                return 8;
              });
              return child == 128 + SIGTERM && !is_readable(caught.termination().fd()) ? 7 : child;
            }),
            7);
}

TEST(Termination, DefaultIsBackAfterwards) {
  EXPECT_EQ(run_apart([] {
              { const CaughtTermination caught; }
              ::raise(SIGTERM);
              return 8;
            }),
            1000 + SIGTERM);
}

TEST(Termination, EndsAProgramWithItsGroup) {
  Termination termination;
  termination.request(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  const auto done =
      run_command({"sh", "-c", "sleep 60 & sleep 60"}, {.deadline = 30s, .stop = termination.fd()});
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), ::testing::HasSubstr("was stopped"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace gantry::sys
