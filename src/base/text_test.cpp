// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Text, TrimsAllWhiteSpace) {
  EXPECT_EQ(trim("\t GPU \n"), "GPU");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, SplitsKeepingEmptyPieces) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), IsEmpty());
}

TEST(Text, LinesDropOnlyTheLastEmptyOne) {
  EXPECT_THAT(lines("a\n\nb\n"), ElementsAre("a", "", "b"));
}

TEST(Text, NumbersMustFillTheText) {
  EXPECT_EQ(parse_u64("0x10de", 0), 0x10deU);
  EXPECT_EQ(parse_u64("12 "), std::nullopt);
  EXPECT_EQ(parse_u64("-1"), std::nullopt);
  EXPECT_EQ(parse_u64("99999999999999999999"), std::nullopt);
  EXPECT_EQ(parse_i64("-1"), -1);
}

TEST(Text, BytesForPeople) {
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(143771ULL << 20), "140.4 GiB");
}

TEST(Text, GlobsMatchTheWholeName) {
  EXPECT_TRUE(glob_match("libcuda.so.*.*", "libcuda.so.580.159.04"));
  EXPECT_FALSE(glob_match("libcuda.so.*.*", "libcuda.so.1"));
  EXPECT_TRUE(glob_match("gsp*.bin", "gsp_ga10x.bin"));
  EXPECT_FALSE(glob_match("a?", "a"));
}

}  // namespace
}  // namespace gantry
