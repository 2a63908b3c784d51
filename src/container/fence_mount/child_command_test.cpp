// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/child_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>

namespace gantry::fence_mount {
namespace {

using ::testing::HasSubstr;

TEST(Run, GivesTheCommandsExitStatus) {
  EXPECT_EQ(*run({.words = {"sh", "-c", "exit 7"}}), 7);
}

TEST(Run, SaysBySignalNumberWhatEndedTheCommand) {
  EXPECT_EQ(*run({.words = {"sh", "-c", "kill -TERM $$"}}), 128 + SIGTERM);
}

TEST(Run, TellsACommandThatIsNotThereFromOneThatCannotBeExecuted) {
  EXPECT_EQ(*run({.words = {"/no/such/program"}}), 127);
  EXPECT_EQ(*run({.words = {"/etc/passwd"}}), 126);
}

TEST(Run, PreparesTheChildAndNotItself) {
  const ChildCommand command{.words = {"sh", "-c", "test \"$GANTRY_RUN_TEST\" = there"},
                             .before = []() -> Status {
                               ::setenv("GANTRY_RUN_TEST", "there", 1);
                               return {};
                             }};
  EXPECT_EQ(*run(command), 0);
  EXPECT_EQ(std::getenv("GANTRY_RUN_TEST"), nullptr);
}

TEST(Run, IsAnErrorWhenTheChildCannotBePrepared) {
  const auto status = run({.words = {"true"}, .before = []() -> Status {
                             return Error(Errc::Denied, "no mounts here");
                           }});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("no mounts here"));
}

TEST(Run, TellsOfTheChildBeforeItDoesAnything) {
  pid_t told = 0;
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe2(said.data(), O_CLOEXEC), 0);
  const auto status =
      run({.words = {"sh", "-c", "exit 3"},
           .before = [&]() -> Status {
             return ::write(said[1], "x", 1) == 1 ? Status() : Error(Errc::Internal, "pipe");
           },
           .started = [&](pid_t child) -> Status {
             pollfd ready{.fd = said[0], .events = POLLIN, .revents = 0};
             if (::poll(&ready, 1, 50) != 0) return Error(Errc::Busy, "too early");
             told = child;
             return {};
           }});
  EXPECT_EQ(*status, 3);
  EXPECT_GT(told, 0);
  ::close(said[0]);
  ::close(said[1]);
}

TEST(Run, StartsNothingWhenTheCallbackRefuses) {
  const auto status = run({.words = {"sh", "-c", "exit 3"}, .started = [](pid_t) -> Status {
                             return Error(Errc::NotFound, "no such share");
                           }});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("no such share"));
}

// What its supervisor sends reaches the command, whose answer is its own.
TEST(Run, HandsSignalsOnToTheCommand) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);  // NOLINT(android-cloexec-pipe): the command has it too
  const pid_t us = ::fork();
  if (us == 0) {
    const auto script = "trap 'exit 42' TERM; echo >&" + std::to_string(ready[1]) +
                        "; while :; do sleep 0.05; done";
    const auto status = run({.words = {"sh", "-c", script}});
    ::_exit(status.ok() ? *status : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(::kill(us, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(us, &status, 0), us);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  ::close(ready[0]);
  ::close(ready[1]);
}

// In a process of its own: it becomes the parent of all orphans below it.
TEST(Run, EndsWhatTheCommandLeavesRunning) {
  std::array<int, 2> alive{};
  ASSERT_EQ(::pipe(alive.data()), 0);  // NOLINT(android-cloexec-pipe): the command has it too
  const pid_t us = ::fork();
  if (us == 0) {
    ::close(alive[0]);
    const auto out = std::to_string(alive[1]);
    const auto status = run({.words = {"sh", "-c",
                                       "sleep 1000 & setsid sh -c 'sleep 1000 & setsid sleep 1000' "
                                       "& echo >&" +
                                           out + "; exit 3"}});
    ::_exit(status.ok() ? *status : 1);
  }
  ::close(alive[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(us, &status, 0), us);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  char byte = 0;
  EXPECT_EQ(::read(alive[0], &byte, 1), 1);
  EXPECT_EQ(::read(alive[0], &byte, 1), 0);  // ends only when nobody has it any more
  ::close(alive[0]);
}

TEST(Run, LeavesNoCommandBehindWhenItIsKilled) {
  std::array<int, 2> alive{};
  ASSERT_EQ(::pipe2(alive.data(), O_CLOEXEC), 0);
  const pid_t us = ::fork();
  if (us == 0) {
    ::close(alive[0]);
    (void)run({.words = {"sh", "-c", "echo; exec sleep 1000"}, .before = [&]() -> Status {
                 ::dup2(alive[1], 1);
                 ::close(alive[1]);
                 return {};
               }});
    ::_exit(0);
  }
  ::close(alive[1]);
  char byte = 0;
  ASSERT_EQ(::read(alive[0], &byte, 1), 1);
  ASSERT_EQ(::kill(us, SIGKILL), 0);
  ASSERT_EQ(::waitpid(us, nullptr, 0), us);
  EXPECT_EQ(::read(alive[0], &byte, 1), 0);  // ends only when the command has
  ::close(alive[0]);
}

}  // namespace
}  // namespace gantry::fence_mount
