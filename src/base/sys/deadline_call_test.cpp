// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_call.hpp"

#include "support/tree.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(DeadlineCall, BringsTheOutcomeBack) {
  const auto outcome = call_with_deadline(
      [](int) {
        return CallOutcome{3, ENODEV};
      },
      -1, 10s, "the load");
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(*outcome, (CallOutcome{3, ENODEV}));
}

TEST(DeadlineCall, HasOnlyTheDescriptorThatItWasGiven) {
  test::Tree tree;
  tree.file("kept", "content").file("closed");
  const auto kept = *tree.host().open("/kept", O_RDONLY);
  const auto closed = *tree.host().open("/closed", O_RDONLY);
  const auto look = [&](int file) {
    char byte = 0;
    return CallOutcome{::fcntl(closed.get(), F_GETFD) < 0 && ::fcntl(0, F_GETFD) < 0,
                       ::read(file, &byte, 1) == 1 ? byte : -1};
  };
  const auto outcome = call_with_deadline(look, kept.get(), 10s, "the look");
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(*outcome, (CallOutcome{1, 'c'}));
}

TEST(DeadlineCall, ClosesAllDescriptorsIfItNeedsNone) {
  const auto look = [](int) {
    int open = 0;
    for (int fd = 0; fd < 256; ++fd) open += ::fcntl(fd, F_GETFD) < 0 ? 0 : 1;
    return CallOutcome{0, open};
  };
  const auto outcome = call_with_deadline(look, -1, 10s, "the look");
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->value, 1) << "only the pipe of the answer";
}

TEST(DeadlineCall, SaysWhatDidNotReturn) {
  const auto hang = [](int) {
    for (;;) ::pause();
    return CallOutcome{};
  };
  const auto outcome = call_with_deadline(hang, -1, 100ms, "the load of nvidia.ko");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::Timeout);
  EXPECT_THAT(outcome.error().text(), HasSubstr("the load of nvidia.ko did not return within 100"));
  EXPECT_THAT(outcome.error().remedy(), HasSubstr("/stack"));
}

TEST(DeadlineCall, SaysThatItsProcessWasKilled) {
  const auto die = [](int) {
    ::kill(::getpid(), SIGKILL);
    return CallOutcome{};
  };
  const auto outcome = call_with_deadline(die, -1, 10s, "the load of nvidia.ko");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::Internal);
  EXPECT_THAT(outcome.error().text(), HasSubstr("the load of nvidia.ko: its process was killed"));
}

}  // namespace
}  // namespace gantry::sys
