// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/value.hpp"

#include <gmock/gmock.h>

namespace gantry::yaml {
namespace {

using testing::HasSubstr;

constexpr Limits kCopying{.values = 1000, .aliases = AliasPolicy::Copy};

TEST(Yaml, RemembersWhereEachValueStood) {
  const auto root = parse("a: 1\nb:\n  - x\n  - \"2\"\n", "f.yaml");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->find("a")->where(), "f.yaml:1");
  const auto& items = root->find("b")->items;
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[1].where(), "f.yaml:4");
  EXPECT_FALSE(items[0].quoted);
  EXPECT_TRUE(items[1].quoted);
}

TEST(Yaml, RefusesWhatItIsNotAskedToTake) {
  EXPECT_THAT(parse("a: &x 1\n", "f").error().text(), HasSubstr("f:1: anchors"));
  EXPECT_THAT(parse("a: 1\na: 2\n", "f").error().text(),
              HasSubstr("f:2: key \"a\" is given twice"));
  EXPECT_THAT(parse("a: !!binary x\n", "f").error().text(), HasSubstr("tags"));
  EXPECT_THAT(parse("a: 1\n---\nb: 1\n", "f").error().text(), HasSubstr("more than one document"));
  EXPECT_THAT(parse(std::string("a: \0", 4), "f").error().text(), HasSubstr("NUL"));
}

TEST(Yaml, CopiesWhatAnAliasStandsFor) {
  const auto root = parse("a: &x [1, 2]\nb: *x\n", "f", kCopying);
  ASSERT_TRUE(root.ok()) << root.error().text();
  EXPECT_EQ(root->find("b")->items.size(), 2U);
}

TEST(Yaml, CountsCopiesBeforeItMakesThem) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 8; ++j) bomb += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(parse(bomb, "f", kCopying).error().text(), HasSubstr("more than 1000 values"));
}

TEST(Yaml, AnAliasOfItselfIsAnError) {
  EXPECT_FALSE(parse("a: &x [*x]\n", "f", kCopying).ok());
}

TEST(Yaml, HasADepth) {
  EXPECT_THAT(parse(std::string(17, '[') + std::string(17, ']'), "f").error().text(),
              HasSubstr("nested deeper than 16"));
  EXPECT_TRUE(parse(std::string(16, '[') + std::string(16, ']'), "f").ok());
}

}  // namespace
}  // namespace gantry::yaml
