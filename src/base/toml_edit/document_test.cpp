// SPDX-License-Identifier: Apache-2.0
#include "base/toml_edit/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::toml_edit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct SetCase {
  const char* name;
  const char* path;
  const char* raw;
  const char* before;
  const char* after;
};

class Set : public testing::TestWithParam<SetCase> {};

TEST_P(Set, ChangesOnlyWhatWasAsked) {
  const auto& c = GetParam();
  auto document = Document::parse(c.before);
  ASSERT_TRUE(document.ok()) << document.error().text();
  const auto path = parse_path(c.path);
  ASSERT_TRUE(path.ok());
  const auto status = document->set(*path, c.raw);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(document->text(), c.after);
}

constexpr SetCase kSets[] = {
    {"AnEmptyFile", "a", "1", "", "a = 1\n"},
    {"AValueInItsPlace", "a.b", "\"y\"", "[a] # here\n\tb =  'x' # why\nc = 1\n",
     "[a] # here\n\tb =  \"y\" # why\nc = 1\n"},
    {"AListOverLines", "a", "[]", "a = [ # one\n  \"]\", # two\n]\nb = 2\n", "a = []\nb = 2\n"},
    {"AKeyAfterTheOthers", "a.c", "2", "[a]\n  b = 1\n\n# of z\n[z]\n",
     "[a]\n  b = 1\n  c = 2\n\n# of z\n[z]\n"},
    {"AKeyOfAnEmptyTable", "a.c", "2", "[a]\n[z]\n", "[a]\nc = 2\n[z]\n"},
    {"AFirstKeyOfTheRoot", "v", "2", "# Opens.\n\n[a]\nb = 1\n",
     "# Opens.\n\nv = 2\n\n[a]\nb = 1\n"},
    {"AFirstKeyBeforeAHeader", "v", "2", "[a]\n", "v = 2\n\n[a]\n"},
    {"ATableAfterItsRelatives", "p.\"i.c\".r.n.k", "1",
     "[p]\n  [p.\"i.c\"]\n    x = 1\n    [p.\"i.c\".r.m]\n      k = 0\n  [p.other]\n    y = 1\n",
     "[p]\n  [p.\"i.c\"]\n    x = 1\n    [p.\"i.c\".r.m]\n      k = 0\n\n    [p.\"i.c\".r.n]\n"
     "      k = 1\n\n  [p.other]\n    y = 1\n"},
    {"ATableSpelledLikeItsRelatives", "p.\"i.c\".n.k", "1", "[p.'i.c']\nx = 1\n",
     "[p.'i.c']\nx = 1\n\n[p.'i.c'.n]\nk = 1\n"},
    {"ANewTableAtTheEnd", "b.k", "1", "[a]\nx = 1", "[a]\nx = 1\n\n[b]\nk = 1\n"},
    {"CommentsOfTheNextTableStayWithIt", "a.b.k", "1", "[a]\nx = 1\n# y = 2\n\n# about z\n[z]\n",
     "[a]\nx = 1\n# y = 2\n\n[a.b]\nk = 1\n\n# about z\n[z]\n"},
    {"AnInlineTable", "a.o.k", "1", "[a]\no = { j = \"}\" } # c\n",
     "[a]\no = { j = \"}\", k = 1 } # c\n"},
    {"AnEmptyInlineTable", "o.k.l", "1", "o = {}\n", "o = { k.l = 1 }\n"},
    {"AnInlineTablesMember", "o.j", "2", "o = { i = {a=1}, j=1 }\n", "o = { i = {a=1}, j=2 }\n"},
    {"DottedKeys", "a.b.d", "2", "[a]\nb.c = 1\nz = 1\n", "[a]\nb.c = 1\nb.d = 2\nz = 1\n"},
    {"WindowsLineEnds", "a.c", "2", "[a]\r\nb = 1\r\n", "[a]\r\nb = 1\r\nc = 2\r\n"},
    {"TextsThatLookLikeTables", "a.k", "1", "t = \"\"\"\n[a]\nk = 0\n\"\"\"\n[a]\n",
     "t = \"\"\"\n[a]\nk = 0\n\"\"\"\n[a]\nk = 1\n"},
    {"AnArrayOfTablesBeside", "b.k", "1", "[[a]]\nk = 1\n[[a]]\nk = 2\n[b]\nx = 1\n",
     "[[a]]\nk = 1\n[[a]]\nk = 2\n[b]\nx = 1\nk = 1\n"},
};

INSTANTIATE_TEST_SUITE_P(TomlEdit, Set, testing::ValuesIn(kSets),
                         [](const auto& c) { return c.param.name; });

struct RemoveCase {
  const char* name;
  const char* path;
  const char* before;
  const char* after;
};

class Remove : public testing::TestWithParam<RemoveCase> {};

TEST_P(Remove, TakesOutOnlyWhatWasAsked) {
  const auto& c = GetParam();
  auto document = Document::parse(c.before);
  ASSERT_TRUE(document.ok()) << document.error().text();
  const auto status = document->remove(*parse_path(c.path));
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(document->text(), c.after);
}

constexpr RemoveCase kRemoves[] = {
    {"WhatIsNotThere", "a.b", "[a]\nc = 1\n", "[a]\nc = 1\n"},
    {"AKeyWithItsLine", "a.b", "[a]\nb = [\n1]  # b\nc = 1\n", "[a]\nc = 1\n"},
    {"ATableWithAllBelow", "a.n", "[a]\nx = 1\n\n[a.n]\nk = 1\n  [a.n.o]\n  l = 1\n\n# z\n[z]\n",
     "[a]\nx = 1\n\n# z\n[z]\n"},
    {"ATableAtTheEnd", "a.n", "[a]\nx = 1\n\n[a.n]\nk = 1\n", "[a]\nx = 1\n"},
    {"AnInlineMember", "o.j", "o = { i = 1, j = 2, k = 3 }\n", "o = { i = 1, k = 3 }\n"},
    {"AFirstInlineMember", "o.i", "o = { i = 1, j = 2 }\n", "o = { j = 2 }\n"},
    {"DottedKeys", "a.b", "[a]\nb.c = 1\nb.d.e = 1\nz = 1\n", "[a]\nz = 1\n"},
};

INSTANTIATE_TEST_SUITE_P(TomlEdit, Remove, testing::ValuesIn(kRemoves),
                         [](const auto& c) { return c.param.name; });

TEST(TomlEdit, AnswersWhatAFileSays) {
  const auto document = *Document::parse(
      "version = 2\nimports = ['a', \"b\"]\n[p.\"x.y\".r.runc]\ntype = 't'\noptions = { B = 'q' "
      "}\n");
  EXPECT_EQ(document.integer({"version"}), 2);
  EXPECT_THAT(*document.strings({"imports"}), ElementsAre("a", "b"));
  EXPECT_EQ(document.string({"p", "x.y", "r", "runc", "type"}), "t");
  EXPECT_EQ(document.string({"p", "x.y", "r", "runc", "options", "B"}), "q");
  EXPECT_THAT(document.members({"p", "x.y", "r", "runc"}), ElementsAre("options", "type"));
  EXPECT_TRUE(document.is_table({"p", "x.y", "r", "runc", "options"}));
  EXPECT_TRUE(document.is_table({"p", "x.y"}));
  EXPECT_FALSE(document.has({"p", "x.y", "s"}));
  EXPECT_FALSE(document.string({"version"}));
}

TEST(TomlEdit, RefusesWhatCannotBeDone) {
  auto document = *Document::parse("a = 1\n[t]\nx = 1\n[[l]]\ny = 1\n");
  const auto before = document.text();
  EXPECT_EQ(document.set({"a", "b"}, "1").error().code(), Errc::Exists);
  EXPECT_EQ(document.set({"t"}, "1").error().code(), Errc::Exists);
  EXPECT_EQ(document.set({"l", "y"}, "1").error().code(), Errc::Unsupported);
  EXPECT_FALSE(document.set({"b"}, "1\nc = 2").ok());
  EXPECT_FALSE(document.set({"b"}, "nonsense").ok());
  EXPECT_EQ(document.text(), before);
}

TEST(TomlEdit, SaysTheLineOfWhatIsNoToml) {
  const auto broken = Document::parse("a = 1\nb = \n");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code(), Errc::Corrupt);
  EXPECT_THAT(broken.error().text(), HasSubstr("line 2"));
}

TEST(TomlEdit, PathsAreReadAndWrittenAsInAFile) {
  const auto path = *parse_path("plugins.\"io.containerd.grpc.v1.cri\".a-b");
  EXPECT_THAT(path, ElementsAre("plugins", "io.containerd.grpc.v1.cri", "a-b"));
  EXPECT_EQ(to_string(path), "plugins.\"io.containerd.grpc.v1.cri\".a-b");
  for (const auto* bad : {"", "a b", "a = 1\nb", "a.", "#"}) EXPECT_FALSE(parse_path(bad).ok());
}

TEST(TomlEdit, WhatTheParserTakesForGrantedIsCheckedAllTheSame) {
  for (const auto* text :
       {"a = [}", "[\x7f]\n", "a = {\x7f = 1}", "a = ]", "[[}]]", "\xef\xbb\xaf = 1",
        "a = \"\\\xce\xa3\"", "a = \"\"\"\\\n \xce\xa3\"\"\""}) {
    EXPECT_EQ(Document::parse(text).error().code(), Errc::Corrupt) << text;
  }
}

TEST(TomlEdit, LettersBeyondAsciiAreAtHomeInTextsAndComments) {
  auto document = *Document::parse("# Größe\n\"Σ\" = \"Größe\" # é\nb = '''ž\n'''\n");
  EXPECT_EQ(document.string({"Σ"}), "Größe");
  ASSERT_TRUE(document.set({"c"}, quote("ž")).ok());
  EXPECT_EQ(document.string({"c"}), "ž");
}

TEST(TomlEdit, HostileTextsAreRefused) {
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(Document::parse(deep + " = 1").error().code(), Errc::Corrupt);
  EXPECT_EQ(Document::parse(std::string(kMaxBytes + 1, '#')).error().code(), Errc::Corrupt);
  EXPECT_EQ(Document::parse("a = " + std::string(5000, '[')).error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::toml_edit
