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

TEST(Yaml, CountsTheBytesOfCopies) {
  std::string bomb = "a: &a " + std::string(60'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 200; ++i) bomb += ", *a";
  EXPECT_THAT(parse(bomb + "]\n", "f", kCopying).error().text(),
              HasSubstr("f:2: aliases (*name) repeat more than 512 KiB"));
}

TEST(Yaml, ReadsEveryDocumentOfAStream) {
  const auto all = parse_all("# none\n---\na: &x 1\n--- # second\nb: 2\n...\n---\n", "f", kCopying);
  ASSERT_TRUE(all.ok()) << all.error().text();
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(all->at(1).find("b")->where(), "f:5");
  EXPECT_EQ(all->at(2).kind, Value::Kind::Map);
  EXPECT_TRUE(parse_all("# none\n", "f")->empty());
  EXPECT_FALSE(parse_all("a: &x 1\n---\nb: *x\n", "f", kCopying).ok());  // anchors end with it
}

TEST(Yaml, LimitsHoldForAllDocumentsTogether) {
  std::string stream;
  for (int i = 0; i < 400; ++i) stream += "---\na: 1\nb: 2\n";
  const Limits many{.values = 1000, .documents = 500};
  EXPECT_THAT(parse_all(stream, "f", many).error().text(), HasSubstr("more than 1000 values"));
  EXPECT_THAT(parse_all(stream, "f", {}).error().text(), HasSubstr("more than 256 documents"));
}

TEST(Yaml, IgnoresTagsOnRequest) {
  const Limits limits{.tags = TagPolicy::Ignore};
  const auto root = parse("a: !!str 1\nb: !Ref x\n", "f", limits);
  ASSERT_TRUE(root.ok()) << root.error().text();
  EXPECT_TRUE(root->find("a")->quoted);
  EXPECT_EQ(root->find("b")->text, "x");
}

TEST(Yaml, SaysThatATabIsNoIndentation) {
  for (const auto* text : {"a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 1\n", "a:\n  - x: 1\n \t y: 2\n"})
    EXPECT_THAT(parse(text, "f").error().text(), HasSubstr("is indented with a tab")) << text;
  EXPECT_TRUE(parse("{\n\t\"a\": 1\n}\n", "f").ok());
  EXPECT_TRUE(parse("a:\t1\n", "f").ok());
}

TEST(Yaml, SaysThatATemplateMustBeRendered) {
  EXPECT_THAT(parse("a: {{ .Values.a }}\n", "f").error().text(), HasSubstr("{{ is a template"));
}

TEST(Yaml, AMapWithManyKeysIsReadInTime) {
  std::string text;
  constexpr int kKeys = 20'000;  // a search for each key would compare 2 * 10^8 texts
  for (int i = 0; i < kKeys; ++i) text += "key-of-a-wide-map-" + std::to_string(i) + ": 1\n";
  const Limits wide{.bytes = std::size_t{8} << 20, .values = 2 * kKeys + 3};
  ASSERT_TRUE(parse(text, "f", wide).ok());
  EXPECT_THAT(parse(text + "key-of-a-wide-map-0: 1\n", "f", wide).error().text(),
              HasSubstr("given twice"));
}

TEST(Yaml, AnAliasOfItselfIsAnError) {
  EXPECT_FALSE(parse("a: &x [*x]\n", "f", kCopying).ok());
}

TEST(Yaml, HasADepth) {
  EXPECT_THAT(parse(std::string(17, '[') + std::string(17, ']'), "f").error().text(),
              HasSubstr("nested deeper than 16"));
  EXPECT_TRUE(parse(std::string(16, '[') + std::string(16, ']'), "f").ok());
}

TEST(Yaml, RefusesBytesThatAreNotUtf8) {
  const auto refused = parse("a: 1\nb: \xFF\n", "f.yaml", {});
  EXPECT_EQ(refused.error().code(), Errc::Corrupt);
  EXPECT_EQ(refused.error().text(), "f.yaml:2: a byte that is not UTF-8");
}

}  // namespace
}  // namespace gantry::yaml
