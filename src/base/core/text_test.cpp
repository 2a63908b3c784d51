// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"

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

TEST(Text, DigitsOnly) {
  EXPECT_TRUE(all_digits("0580"));
  EXPECT_FALSE(all_digits(""));
  EXPECT_FALSE(all_digits("58a"));
  EXPECT_FALSE(all_digits("-1"));
}

TEST(Text, TheLastPartOfAPath) {
  EXPECT_EQ(base_name("/usr/lib/libcuda.so.1"), "libcuda.so.1");
  EXPECT_EQ(base_name("/x"), "x");
  EXPECT_EQ(base_name("x"), "x");
  EXPECT_EQ(base_name("/usr/"), "");
}

TEST(Text, TheDirectoryOfAPath) {
  EXPECT_EQ(parent_directory("/usr/lib/libcuda.so.1"), "/usr/lib");
  EXPECT_EQ(parent_directory("/x"), "/");
  EXPECT_EQ(parent_directory("x"), "/");
  EXPECT_EQ(parent_directory("a/b"), "a");
  EXPECT_EQ(parent_directory("/usr/"), "/usr");
  EXPECT_EQ(parent_directory("/"), "/");
  EXPECT_EQ(parent_directory(""), "/");
}

TEST(Text, ADirectoryAndANameMakeAPath) {
  EXPECT_EQ(join_path("/usr/lib", "x"), "/usr/lib/x");
  EXPECT_EQ(join_path("/", "x"), "/x");
  for (const auto* path : {"/a/b/c", "/x", "/usr/"})
    EXPECT_EQ(join_path(parent_directory(path), base_name(path)), path);
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

TEST(Utf8, IsDistinguishedFromOtherBytes) {
  for (const char* good :
       {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xF0\x9F\x98", "\xFF", "a\xC3(", "\xF0\x8F\xBF\xBF"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(Text, Utf8PrefixEndsBeforeTheFirstWrongByte) {
  EXPECT_EQ(utf8_prefix(""), 0U);
  EXPECT_EQ(utf8_prefix("plain text of more than eight bytes"), 35U);
  EXPECT_EQ(utf8_prefix("12345678\xC3\xA9 12345678"), 19U);
  EXPECT_EQ(utf8_prefix("1234567\xC3\xA9\xC3"), 9U);
  EXPECT_EQ(utf8_prefix("123456789012345\xFF"), 15U);
  EXPECT_EQ(replace_invalid_utf8("a\xFFz"), "a\uFFFDz");
}

}  // namespace
}  // namespace gantry
