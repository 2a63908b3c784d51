// SPDX-License-Identifier: Apache-2.0
#include "base/sys/stop_signal.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace gantry::sys {
namespace {

using namespace std::chrono_literals;

TEST(StopSignal, SleepsToTheEndWhenItIsNotRaised) {
  const StopSignal signal;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(signal.sleep(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
}

TEST(StopSignal, EndsASleepFromAnotherThreadAndStaysRaised) {
  StopSignal signal;
  std::thread sleeper([&] { EXPECT_FALSE(signal.sleep(1h)); });
  signal.raise();
  sleeper.join();
  EXPECT_TRUE(signal.raised());
  EXPECT_FALSE(signal.sleep(1h));
}

}  // namespace
}  // namespace gantry::sys
