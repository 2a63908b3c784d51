// SPDX-License-Identifier: Apache-2.0
#include "sys/child.hpp"

#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(InChild, BringsTheAnswerBack) {
  auto answer = in_child([] { return std::string(200'000, 'x'); }, {});
  ASSERT_TRUE(answer.ok()) << answer.error().text();
  EXPECT_EQ(answer->size(), 200'000U);
}

TEST(InChild, KillsAChildThatHangs) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = in_child(
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
  auto answer = in_child(
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
  auto answer = in_child([] { return std::string(4096, 'x'); }, {.limit_bytes = 100});
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

TEST(Child, IsKilledWhenNobodyJoinsIt) {
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
  auto answer = in_child([] { return std::to_string(::getuid()); }, {.user = &nobody});
  if (::geteuid() == 0) {
    EXPECT_EQ(*answer, "65534");
  } else {
    EXPECT_EQ(answer.error().code(), Errc::Denied);
  }
}

TEST(RunCommand, GivesStatusAndOutput) {
  auto result = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"}, 5s);
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_EQ(result->status, 3);
  EXPECT_EQ(result->output, "out\nerr\n");
}

TEST(RunCommand, SaysWhenTheProgramDoesNotExist) {
  EXPECT_EQ(run_command({"/no/such/program"}, 5s)->status, 127);
}

}  // namespace
}  // namespace gantry::sys
