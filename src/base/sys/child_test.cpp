// SPDX-License-Identifier: Apache-2.0
#include "base/sys/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(InChild, BringsTheAnswerBack) {
  auto answer = run_in_child([] { return std::string(200'000, 'x'); }, {});
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  EXPECT_EQ(answer->size(), 200'000U);
}

TEST(InChild, KillsAChildThatHangs) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = run_in_child(
      [] {
        ::sleep(30);
        return std::string();
      },
      {.deadline = 100ms});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::Timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(InChild, SurvivesACrash) {
  auto answer = run_in_child(
      [] {
        ::kill(::getpid(), SIGKILL);
        return std::string();
      },
      {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::Internal);
  EXPECT_THAT(answer.error().text(), HasSubstr("crashed"));
}

TEST(InChild, RefusesAnEndlessAnswer) {
  auto answer = run_in_child([] { return std::string(4096, 'x'); }, {.limit_bytes = 100});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::Corrupt);
}

TEST(Child, WorksWhileTheParentDoesSomethingElse) {
  auto child = Child::start([] { return std::string("done"); }, {});
  ASSERT_TRUE(child.ok());
  auto moved = std::move(*child);
  const auto answer = moved.join();
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  EXPECT_EQ(*answer, "done");
}

TEST(Child, IsKilledWhenItIsNotJoined) {
  const auto start = std::chrono::steady_clock::now();
  {
    const auto child = Child::start(
        [] {
          ::sleep(30);
          return std::string();
        },
        {});
    ASSERT_TRUE(child.ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(InChild, RunsAsAnotherUser) {
  const ChildUser nobody{.uid = 65534, .gid = 65534};
  auto answer = run_in_child([] { return std::to_string(::getuid()); }, {.user = &nobody});
  if (::geteuid() == 0) {
    EXPECT_EQ(*answer, "65534");
  } else {
    EXPECT_EQ(answer.error().code(), Errc::Denied);
  }
}

// As under a parent that ignores SIGCHLD (nohup, some container launchers).
TEST(InChild, AnswersWhileSigchldIsIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const auto start = std::chrono::steady_clock::now();
  const auto answer = run_in_child([] { return std::string("done"); }, {});
  const auto crash = run_in_child(
      []() -> std::string {
        ::kill(::getpid(), SIGKILL);
        return "";
      },
      {});
  ::signal(SIGCHLD, before);
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  EXPECT_EQ(*answer, "done");
  EXPECT_FALSE(crash.ok()) << "a crash is not an empty answer";
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(SpawnedChild, AnswersOnDescriptor3) {
  auto child = Child::spawn({"/bin/sh", "-c", "echo answer >&3"}, {});
  ASSERT_TRUE(child.ok()) << child.error().text();
  const auto answer = child->join();
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  EXPECT_EQ(*answer, "answer");
}

TEST(SpawnedChild, RunsTheFileOfADescriptorUnderTheNameOfItsCommand) {
  const UniqueFd shell(::open("/bin/sh", O_PATH | O_CLOEXEC));
  auto child = Child::spawn({"/no/such/program", "-c", "echo $0 >&3"}, {.program = shell.get()});
  ASSERT_TRUE(child.ok()) << child.error().text();
  EXPECT_EQ(*child->join(), "/no/such/program");
}

TEST(SpawnedChild, SaysThatThereIsNoProgram) {
  const auto child = Child::spawn({"/no/such/program"}, {});
  EXPECT_EQ(child.error().sys_errno(), ENOENT);
}

TEST(SpawnedChild, IsKilledAtTheDeadlineUnlikeOneThatFails) {
  auto slow = Child::spawn({"/bin/sh", "-c", "exec sleep 30"}, {.deadline = 100ms});
  EXPECT_EQ(slow->join().error().code(), Errc::Timeout);
  auto failed = Child::spawn({"/bin/sh", "-c", "exit 7"}, {});
  EXPECT_THAT(failed->join().error().text(), ::testing::HasSubstr("ended with status 7"));
  auto half = Child::spawn({"/bin/sh", "-c", "printf ans >&3"}, {});
  EXPECT_THAT(half->join().error().text(), ::testing::HasSubstr("whole answer"));
}

TEST(RunCommand, GivesStatusAndOutput) {
  auto result = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"}, 5s);
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_EQ(result->status, 3);
  EXPECT_EQ(result->output, "out\nerr\n");
}

TEST(RunCommand, SaysWhenTheProgramDoesNotExist) {
  const auto result = run_command({"/no/such/program"}, 5s);
  EXPECT_EQ(result->status, 127);
  EXPECT_EQ(result->output, "/no/such/program: No such file or directory\n");
}

TEST(RunCommand, DoesNotWaitForADaemonThatHoldsItsOutput) {
  const auto start = std::chrono::steady_clock::now();
  auto result = run_command({"sh", "-c", "sleep 8 & echo started"}, 20s);
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_EQ(result->output, "started\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(RunCommand, EndsTheProgramWithItsChildrenAtTheDeadline) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ::fcntl(ends[1], F_SETFD, 0);  // inherited: it closes when the last of them is gone
  const auto script = fmt::format("sleep 8 >&{} & wait", ends[1]);
  auto result = run_command({"sh", "-c", script}, 100ms);
  ::close(ends[1]);
  EXPECT_EQ(result.error().code(), Errc::Timeout);
  pollfd closed{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, 4000), 1) << "a child of the program still runs";
  ::close(ends[0]);
}

TEST(RunCommand, KeepsTheEndOfALongOutputIfThatIsEnough) {
  const std::vector<std::string> argv{"sh", "-c", "head -c 6000000 /dev/zero; echo end; exit 3"};
  EXPECT_EQ(run_command(argv, 20s).error().code(), Errc::Corrupt);
  const auto done = run_command(argv, {.deadline = 20s, .long_output = LongOutput::KeepsEnd});
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(done->status, 3);
  EXPECT_TRUE(done->output.ends_with("end\n"));
  EXPECT_LE(done->output.size(), std::size_t{4} << 20);
}

TEST(RunCommand, HasNothingToRead) {
  EXPECT_EQ(run_command({"cat"}, 5s)->status, 0);
}

}  // namespace
}  // namespace gantry::sys
