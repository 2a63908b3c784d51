// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.hpp"

#include "base/json/document.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace gantry::json {
namespace {

TEST(Writer, WritesEveryKindOfValueOnOneLine) {
  Writer out;
  out.object([&] {
    out.member("text", "a\"b\n");
    out.member("true", true);
    out.member("null", nullptr);
    out.member("missing", std::optional<int>());
    out.member("most", std::numeric_limits<std::uint64_t>::max());
    out.member("least", std::numeric_limits<std::int64_t>::min());
    out.member("small", std::uint8_t{7});
    out.member("half", 0.5);
    out.raw_member("raw", R"({"a":1})");
  });
  EXPECT_EQ(out.text(),
            R"({"text":"a\"b\n","true":true,"null":null,"missing":null,)"
            R"("most":18446744073709551615,"least":-9223372036854775808,"small":7,"half":0.5,)"
            R"("raw":{"a":1}})");
}

TEST(Writer, IndentsByTwoSpacesAndKeepsEmptyOnesOnTheirLine) {
  Writer out(Layout::Indented);
  out.object([&] {
    out.array("list", std::vector<int>{1, 2});
    out.array("none", std::vector<int>{});
    out.object("nothing", [] {});
    out.object("inner", [&] { out.member("a", "b"); });
  });
  EXPECT_EQ(out.text(), R"({
  "list": [
    1,
    2
  ],
  "none": [],
  "nothing": {},
  "inner": {
    "a": "b"
  }
})");
}

TEST(Writer, PutsSpacesBetweenValuesOnOneLine) {
  Writer out(Layout::Spaced);
  out.object([&] {
    out.array("list", std::vector<int>{1, 2});
    out.object("map", std::map<std::string, std::string>{{"a", "b"}, {"c", "d"}});
  });
  EXPECT_EQ(out.text(), R"({"list": [1, 2], "map": {"a": "b", "c": "d"}})");
}

TEST(Writer, WritesARowForEachValueOfTheOutermostObject) {
  Writer out(Layout::Rows);
  out.object([&] {
    out.object("gpu", [&] { out.array("names", std::vector<std::string>{"a", "b"}); });
    out.member("running", false);
  });
  EXPECT_EQ(out.text(), R"({
  "gpu": {"names": ["a", "b"]},
  "running": false
})");
}

TEST(Writer, WritesRowsInsideAnyLayout) {
  const std::vector<int> numbers{1, 2};
  const auto row = [](Writer& out) {
    return [&out](int number) { out.object([&] { out.member("n", number); }); };
  };
  Writer out(Layout::Indented);
  out.object([&] {
    out.rows("some", numbers, row(out));
    out.rows("none", std::vector<int>{}, row(out));
    out.array("plain", numbers);
  });
  EXPECT_EQ(out.text(), R"({
  "some": [
    {"n": 1},
    {"n": 2}
  ],
  "none": [
  ],
  "plain": [
    1,
    2
  ]
})");
  Writer rows(Layout::Rows);
  rows.array([&] {
    rows.object([&] {
      rows.member("name", "x");
      rows.rows("inside", numbers, row(rows));
      rows.member("last", true);
    });
  });
  EXPECT_EQ(rows.text(), R"([
  {"name": "x", "inside": [
      {"n": 1},
      {"n": 2}
    ], "last": true}
])");
}

TEST(Writer, WritesRangesByAFunction) {
  const std::map<std::string, int> ages{{"a", 1}, {"b", 2}};
  Writer out;
  out.array(ages, [&](const auto& pair) {
    out.object([&] {
      out.member("name", pair.first);
      out.member("age", pair.second);
    });
  });
  EXPECT_EQ(out.text(), R"([{"name":"a","age":1},{"name":"b","age":2}])");
}

TEST(Writer, ReplacesBytesThatAreNotUtf8) {
  Writer out;
  out.object([&] { out.member("k\xFF", "\xC3\xA9\xC3 \xF0\x9F"); });
  EXPECT_EQ(out.text(), "{\"k\uFFFD\":\"\u00e9\uFFFD \uFFFD\uFFFD\"}");
}

TEST(Writer, WhatItWritesParses) {
  for (const auto layout : {Layout::Line, Layout::Spaced, Layout::Indented, Layout::Rows}) {
    Writer out(layout);
    out.array([&] {
      out.value("\x01\x7F/\\");
      out.array([&] { out.array([] {}); });
      out.object([&] {
        out.key("x");
        out.object([&] { out.member("", -1); });
      });
    });
    const auto document = Document::parse(out.text());
    ASSERT_TRUE(document.ok()) << document.error().text();
    EXPECT_EQ(document->root().element(0).string(), "\x01\x7F/\\");
    EXPECT_EQ(document->root().element(2)["x"][""].i64(), -1);
  }
}

}  // namespace
}  // namespace gantry::json
