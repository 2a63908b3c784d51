// SPDX-License-Identifier: Apache-2.0
#include "base/sys/socket_wait.hpp"

#include "base/sys/stop_signal.hpp"

#include <poll.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

Pair connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {.ours = UniqueFd(ends[0]), .theirs = UniqueFd(ends[1])};
}

TEST(SocketWait, ReceivesWhatWasSentAndTheEnd) {
  auto pair = connected();
  const WaitLimit patience{.deadline = Clock::now() + 30s};
  ASSERT_TRUE(send_all(pair.theirs.get(), "abc", patience).ok());
  pair.theirs.reset();
  std::array<char, 8> buffer{};
  EXPECT_EQ(*receive(pair.ours.get(), buffer, patience), 3U);
  EXPECT_EQ(*receive(pair.ours.get(), buffer, patience), 0U);
}

TEST(SocketWait, EndsAtTheDeadline) {
  const auto pair = connected();
  std::array<char, 8> buffer{};
  const auto begin = Clock::now();
  const auto got = receive(pair.ours.get(), buffer, {.deadline = begin + 20ms});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST(SocketWait, APeerThatAlwaysHasMoreIsLeftAtTheDeadline) {
  const auto pair = connected();
  ASSERT_TRUE(send_all(pair.theirs.get(), "abc", {.deadline = Clock::now() + 30s}).ok());
  std::array<char, 1> buffer{};
  const auto late = receive(pair.ours.get(), buffer, {.deadline = Clock::now()});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Errc::Timeout);
  StopSignal stop;
  stop.raise();
  const auto stopped =
      receive(pair.ours.get(), buffer, {.deadline = Clock::now() + 30s, .cancel = stop.fd()});
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().text(), HasSubstr("asked to stop"));
}

TEST(SocketWait, SendingToAPeerThatDoesNotReadEndsAtTheDeadline) {
  const auto pair = connected();
  const auto sent = send_all(pair.ours.get(), std::string(std::size_t{8} << 20, 'x'),
                             {.deadline = Clock::now() + 20ms});
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code(), Errc::Timeout);
}

TEST(SocketWait, EndsWhenItIsCancelled) {
  const auto pair = connected();
  StopSignal stop;
  EXPECT_FALSE(is_readable(stop.fd()));
  stop.raise();
  EXPECT_TRUE(is_readable(stop.fd()));
  const auto waited =
      wait_for(pair.ours.get(), POLLIN, {.deadline = Clock::now() + 30s, .cancel = stop.fd()});
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code(), Errc::Timeout);
  EXPECT_THAT(waited.error().text(), HasSubstr("asked to stop"));
}

TEST(SocketWait, NoDescriptorIsNeverReadable) {
  EXPECT_FALSE(is_readable(-1));
}

}  // namespace
}  // namespace gantry::sys
