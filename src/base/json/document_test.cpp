// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"

#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::json {
namespace {

using test::parsed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Document, AnswersByPath) {
  const auto document = parsed(R"({"process": {"env": ["A=1", "B=2"], "user": {"uid": 7}}})");
  EXPECT_THAT(document["process"]["env"].strings(), ElementsAre("A=1", "B=2"));
  EXPECT_EQ(document["process"]["user"]["uid"].u64(), 7);
  EXPECT_EQ(document["process"]["env"].element(1).string(), "B=2");
}

TEST(Document, WhatIsMissingIsAbsentAllTheWay) {
  const auto document = parsed(R"({"a": 1})");
  EXPECT_FALSE(document["b"]["c"].element(3)["d"]);
  EXPECT_FALSE(document["a"]["c"]);
  EXPECT_EQ(document["b"].string(), std::nullopt);
  EXPECT_EQ(document["b"].size(), 0);
}

TEST(Document, UnescapesStringsAndKeys) {
  const auto document = parsed(R"({"\u0061\n": "\ud83d\ude00 \"q\" \/ \ud800x"})");
  EXPECT_EQ(document["a\n"].string(), "\xF0\x9F\x98\x80 \"q\" / \xEF\xBF\xBDx");
}

TEST(Document, NumbersKeepTheirBytesAndTellWhetherTheyAreWhole) {
  const auto document = parsed("[0, -5, 1.50, 1e3, 18446744073709551615, 18446744073709551616]");
  EXPECT_EQ(document.root().element(0).u64(), 0);
  EXPECT_EQ(document.root().element(1).i64(), -5);
  EXPECT_EQ(document.root().element(2).u64(), std::nullopt);
  EXPECT_EQ(document.root().element(2).raw(), "1.50");
  EXPECT_EQ(document.root().element(4).u64(), 18446744073709551615U);
  EXPECT_EQ(document.root().element(5).u64(), std::nullopt);
}

TEST(Document, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "{]",
                           "[1,]",
                           "{\"a\":1,}",
                           "{,}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "01",
                           "-",
                           "1.",
                           "1e",
                           "+1",
                           ".5",
                           "tru",
                           "nul",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\t\"",
                           "[1 2]",
                           "1 1",
                           "{\"a\":1}}",
                           "\xEF\xBB\xBF{}",
                           "//c\n{}",
                           "NaN",
                           "'a'"}) {
    const auto document = Document::parse(text);
    ASSERT_FALSE(document.ok()) << text;
    EXPECT_EQ(document.error().code(), Errc::Corrupt);
  }
}

TEST(Document, SaysWhereItIsWrong) {
  const auto document = Document::parse("{\n  \"a\": 1,\n  \"b\" 2\n}");
  EXPECT_THAT(document.error().text(), HasSubstr("line 3, column 7"));
}

TEST(Document, AKeyThereTwiceIsAnErrorHoweverSpelled) {
  const auto document = Document::parse(R"({"process": {}, "linux": {}, "\u0070rocess": 1})");
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().text(), HasSubstr("twice"));
  EXPECT_TRUE(Document::parse(R"([{"a": 1}, {"a": 1}])").ok());
}

TEST(Document, DepthAndNumberOfValuesAreBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(Document::parse(nested(kDepthLimit)).ok());
  EXPECT_FALSE(Document::parse(nested(kDepthLimit + 1)).ok());
  std::string many = "[0";
  for (std::size_t i = 0; i < kValueLimit; ++i) many += ",0";
  EXPECT_EQ(Document::parse(many + "]").error().code(), Errc::TooLarge);
  EXPECT_EQ(Document::parse(std::string(kSizeLimit + 1, ' ')).error().code(), Errc::TooLarge);
}

TEST(Document, SurvivesBeingMoved) {
  auto document = parsed(R"({"a": "b"})");
  const auto value = document["a"];
  const auto moved = std::move(document);
  EXPECT_EQ(value.string(), "b");
  EXPECT_EQ(moved["a"].string(), "b");
}

TEST(Quoted, EscapesWhatMustBe) {
  EXPECT_EQ(quote("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\"");
}

TEST(Quoted, EscapesWhatATerminalObeys) {
  EXPECT_EQ(quote("\x7f \xc2\x9b \u00a0\u00e9"), "\"\\u007f \\u009b \u00a0\u00e9\"");
}

TEST(Document, RefusesBytesThatAreNotUtf8UnlessAskedTo) {
  const std::string text = "{\"a\":\n \"x\xFFy\"}";
  const auto refused = Document::parse(text);
  EXPECT_EQ(refused.error().code(), Errc::Corrupt);
  EXPECT_THAT(refused.error().text(), HasSubstr("line 2, column 4: a byte that is not UTF-8"));
  const auto taken = Document::parse(text, Encoding::Any);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ((*taken)["a"].string(), "x\xFFy");
}

}  // namespace
}  // namespace gantry::json
