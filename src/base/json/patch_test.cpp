// SPDX-License-Identifier: Apache-2.0
#include "base/json/patch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::json {
namespace {

using ::testing::HasSubstr;

std::string patched(const std::string& text, const Patch& patch) {
  const auto document = Document::parse(text);
  EXPECT_TRUE(document.ok());
  auto result = patch.apply(*document);
  EXPECT_TRUE(result.ok()) << result.error().text();
  return result.ok() ? *result : "";
}

TEST(Patch, ReplacesOneValueAndLeavesEveryOtherByte) {
  Patch patch;
  patch.set({"b", "c"}, "7");
  EXPECT_EQ(patched("{ \"a\" : 1.50,\r\n\"b\":{\"c\" :  2 , \"d\":[ ]} }\n", patch),
            "{ \"a\" : 1.50,\r\n\"b\":{\"c\" :  7 , \"d\":[ ]} }\n");
}

TEST(Patch, MembersAreAddedWithTheFilesOwnIndentation) {
  Patch patch;
  patch.set({"runtimes", "nvidia"}, R"({"path":"nvidia-container-runtime","args":[]})");
  EXPECT_EQ(patched("{\n    \"debug\": true\n}\n", patch),
            "{\n    \"debug\": true,\n    \"runtimes\": {\n        \"nvidia\": {\n"
            "            \"path\": \"nvidia-container-runtime\",\n            \"args\": []\n"
            "        }\n    }\n}\n");
  EXPECT_EQ(patched("{\n\t\"runtimes\": {\n\t\t\"x\": {}\n\t}\n}", patch),
            "{\n\t\"runtimes\": {\n\t\t\"x\": {},\n\t\t\"nvidia\": {\n"
            "\t\t\t\"path\": \"nvidia-container-runtime\",\n\t\t\t\"args\": []\n\t\t}\n\t}\n}");
}

TEST(Patch, ACompactTextStaysCompact) {
  Patch patch;
  patch.set({"features", "cdi"}, "true");
  patch.append({"hosts"}, R"("unix://")");
  EXPECT_EQ(patched(R"({"a":1,"hosts":["fd://"]})", patch),
            R"({"a":1,"hosts":["fd://","unix://"],"features":{"cdi":true}})");
  EXPECT_EQ(patched("{}", patch), R"({"features":{"cdi":true},"hosts":["unix://"]})");
}

TEST(Patch, TwoMembersOfOneMissingObjectMakeItOnce) {
  Patch patch;
  patch.set({"linux", "a"}, "1");
  patch.set({"linux", "b"}, "2");
  patch.append({"linux", "c", "d"}, "3");
  EXPECT_EQ(patched("{}", patch), R"({"linux":{"a":1,"b":2,"c":{"d":[3]}}})");
}

TEST(Patch, ElementsOnOneLineOfAnIndentedFileStayThere) {
  Patch patch;
  patch.append({"args"}, R"({"x":[1]})");
  EXPECT_EQ(patched("{\n  \"args\": [\"a\"]\n}", patch), "{\n  \"args\": [\"a\", {\"x\": [1]}]\n}");
}

TEST(Patch, AnEmptyContainerInAnIndentedFileIsOpenedUp) {
  Patch patch;
  patch.append({"mounts"}, "1");
  EXPECT_EQ(patched("{\n  \"mounts\": []\n}", patch), "{\n  \"mounts\": [\n    1\n  ]\n}");
  EXPECT_EQ(patched("{}\n", patch), "{\n    \"mounts\": [\n        1\n    ]\n}\n");
}

TEST(Patch, RemovesFirstMiddleLastAndAll) {
  const std::string text = "[\n  1,\n  2,\n  3\n]";
  const auto without = [&text](std::initializer_list<std::size_t> gone) {
    Patch patch;
    for (const auto index : gone) patch.remove({index});
    return patched(text, patch);
  };
  EXPECT_EQ(without({0}), "[\n  2,\n  3\n]");
  EXPECT_EQ(without({1}), "[\n  1,\n  3\n]");
  EXPECT_EQ(without({2}), "[\n  1,\n  2\n]");
  EXPECT_EQ(without({0, 1, 2}), "[]");
  EXPECT_EQ(without({9}), text);
}

TEST(Patch, RemovedAndAddedElementsInOneArray) {
  Patch patch;
  patch.remove({"a", std::size_t{0}});
  patch.append({"a"}, "3");
  EXPECT_EQ(patched("{\"a\": [1, 2]}", patch), "{\"a\": [2, 3]}");
  Patch only;
  only.remove({"a", std::size_t{0}});
  only.append({"a"}, "3");
  EXPECT_EQ(patched("{\"a\": [1]}", only), "{\"a\": [3]}");
}

TEST(Patch, KeysAreFoundHoweverTheyAreSpelled) {
  Patch patch;
  patch.set({"a"}, "2");
  EXPECT_EQ(patched(R"({"\u0061": 1})", patch), R"({"\u0061": 2})");
}

TEST(Patch, NullOnTheWayCountsAsMissing) {
  Patch patch;
  patch.append({"mounts"}, "1");
  EXPECT_EQ(patched(R"({"mounts":null})", patch), R"({"mounts":[1]})");
}

TEST(Patch, SomethingElseOnTheWayIsAnErrorThatNamesIt) {
  Patch patch;
  patch.set({"linux", "devices"}, "1");
  const auto document = Document::parse(R"({"linux": "no"})");
  const auto result = patch.apply(*document);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::Invalid);
  EXPECT_THAT(result.error().text(), HasSubstr("linux is a string"));
}

TEST(Patch, AValueThatIsNoJsonIsRefused) {
  Patch patch;
  patch.set({"a"}, "nope");
  EXPECT_FALSE(patch.apply(*Document::parse("{}")).ok());
}

TEST(Patch, ANameInAnArrayAndANumberInAnObjectAreRefused) {
  Patch named;
  named.set({"a", "b"}, "1");
  EXPECT_EQ(named.apply(*Document::parse("{\"a\": []}")).error().code(), Errc::Invalid);
  Patch numbered;
  numbered.set({"a", std::size_t{0}}, "1");
  EXPECT_EQ(numbered.apply(*Document::parse("{\"a\": {}}")).error().code(), Errc::Invalid);
}

TEST(Patch, RemovingWhatIsNotThereMakesNothing) {
  Patch patch;
  patch.remove({"hooks", "prestart", std::size_t{0}});
  EXPECT_EQ(patched("{\"a\": 1}", patch), "{\"a\": 1}");
  EXPECT_EQ(patched("{\"hooks\": null}", patch), "{\"hooks\": null}");
}

TEST(Patch, NothingChangedIsTheSameText) {
  const std::string text = " {\"a\" :\t[ ] }  \n";
  EXPECT_EQ(patched(text, Patch()), text);
}

}  // namespace
}  // namespace gantry::json
