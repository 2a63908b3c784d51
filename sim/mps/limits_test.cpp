// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/mps_limits_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::sim {
namespace {

constexpr std::uint64_t kGiB = 1ULL << 30U;

TEST(MpsLimits, APercentageIsAboveZeroAndAtMostAHundred) {
  double percentage = 7;
  for (const char* text : {"0", "-1", "100.5", "nan", "x", "", "30%", "1 2"})
    EXPECT_FALSE(parse_percentage(text, percentage)) << text;
  EXPECT_EQ(percentage, 7);
  EXPECT_TRUE(parse_percentage("12.5", percentage));
  EXPECT_EQ(percentage, 12.5);
}

TEST(MpsLimits, MemoryHasAUnitOrIsInBytes) {
  std::uint64_t bytes = 7;
  for (const char* text :
       {"", "x", "-1G", "0", "1T", "99999999999999999999", "99999999999G", "8GG"})
    EXPECT_FALSE(parse_memory_limit(text, bytes)) << text;
  EXPECT_EQ(bytes, 7U);
  EXPECT_TRUE(parse_memory_limit("8G", bytes));
  EXPECT_EQ(bytes, 8 * kGiB);
  EXPECT_TRUE(parse_memory_limit("512MB", bytes));
  EXPECT_EQ(bytes, kGiB / 2);
  EXPECT_TRUE(parse_memory_limit("4096", bytes));
  EXPECT_EQ(bytes, 4096U);
}

TEST(MpsLimits, OfSeveralDevicesEachHasItsOwn) {
  std::uint64_t bytes[GANTRY_SIM_MAX_GPUS] = {};
  parse_memory_limits("0=1G,17=1G,x=1G,2=512M,3=,4=1Gx,15=2G", bytes);
  EXPECT_THAT(
      bytes, testing::ElementsAre(kGiB, 0, kGiB / 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 * kGiB));
  for (const char* text : {"", ",", "=", "0", "0=", ",,0=,=,"}) parse_memory_limits(text, bytes);
  parse_memory_limits(nullptr, bytes);
  EXPECT_EQ(bytes[0], kGiB);
}

// As an H200 answers with 132 multiprocessors.
TEST(MpsLimits, MultiprocessorsComeInPairs) {
  EXPECT_EQ(multiprocessors_of(132, 30), 38U);
  EXPECT_EQ(multiprocessors_of(132, 10), 12U);
  EXPECT_EQ(multiprocessors_of(132, 50), 66U);
  EXPECT_EQ(multiprocessors_of(132, 0.1), 2U);
  EXPECT_EQ(multiprocessors_of(13, 100), 13U);
  EXPECT_EQ(multiprocessors_of(1, 10), 1U);
}

}  // namespace
}  // namespace gantry::sim
