// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;

TEST(Document, IsTheSameFromJsonYamlAndToml) {
  const auto json = parse_json(R"({"a": {"b": [1, true, "x"]}})");
  const auto yaml = parse_yaml("a:\n  b: [1, true, x]\n");
  const auto toml = parse_toml("[a]\nb = [1, true, \"x\"]\n");
  for (const auto* document : {&json, &yaml, &toml}) {
    ASSERT_TRUE(document->ok());
    const auto& items = (*document)->at("a").at("b").items();
    ASSERT_EQ(items.size(), 3U);
    EXPECT_EQ(items[0].text(), "1");
    EXPECT_TRUE(items[1].is_true());
    EXPECT_EQ(items[2].text(), "x");
  }
}

TEST(Document, AnswersForWhatIsNotThereWithNothing) {
  const auto document = *parse_json("{}");
  EXPECT_TRUE(document.at("a").at("b").empty());
  EXPECT_FALSE(document.has("a"));
}

TEST(Document, RefusesDamagedInput) {
  EXPECT_EQ(parse_json("{\"a\": ").error().code(), Errc::Corrupt);
  EXPECT_EQ(parse_yaml("a: [").error().code(), Errc::Corrupt);
  EXPECT_THAT(parse_toml("ok = 1\n[broken\n").error().text(), HasSubstr("line 2"));
}

TEST(Document, RefusesDeepNesting) {
  const std::string open(100'000, '[');
  EXPECT_FALSE(parse_json(open).ok());
  EXPECT_FALSE(parse_json(open + std::string(100'000, ']')).ok());
  EXPECT_FALSE(parse_toml("a = " + open).ok());
  const std::string some(200, '[');
  EXPECT_FALSE(parse_yaml(some + std::string(200, ']')).ok());
}

TEST(Document, RefusesAliasesThatGrow) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) text += ", " + before;
    text += "]\n";
  }
  const auto document = parse_yaml(text);
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().text(), HasSubstr("more than 200000 values"));
}

TEST(Document, RefusesWhatIsTooLarge) {
  const std::string large(kMaxDocumentBytes + 1, ' ');
  EXPECT_FALSE(parse_json(large).ok());
  EXPECT_FALSE(parse_yaml(large).ok());
  EXPECT_FALSE(parse_toml(large).ok());
}

}  // namespace
}  // namespace gantry::doctor
