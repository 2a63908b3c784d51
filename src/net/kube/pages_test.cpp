// SPDX-License-Identifier: Apache-2.0
#include "net/kube/pages.hpp"

#include "support/parsed_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::kube {
namespace {

using testing::ElementsAre;

TEST(Pages, AreReadUntilNoneIsLeft) {
  std::vector<std::string> asked;
  int taken = 0;
  const auto get = [&](const std::string& path) -> Result<json::Document> {
    asked.push_back(path);
    return test::parsed(asked.size() == 1 ? R"({"metadata":{"continue":"a/b"}})" : "{}");
  };
  ASSERT_TRUE(each_page(get, "/api/v1/nodes", [&](json::Value) { ++taken; }).ok());
  EXPECT_THAT(asked, ElementsAre("/api/v1/nodes?limit=250",
                                 "/api/v1/nodes?limit=250&continue=" + percent_encode("a/b")));
  EXPECT_EQ(taken, 2);
}

TEST(Pages, OneThatIsTooLargeIsAskedForAgainInSmallerParts) {
  std::vector<std::string> asked;
  const auto get = [&](const std::string& path) -> Result<json::Document> {
    asked.push_back(path);
    if (asked.size() < 3) return Error(Errc::TooLarge, "too large");
    return test::parsed("{}");
  };
  ASSERT_TRUE(each_page(get, "/x?y=z", [](json::Value) {}).ok());
  EXPECT_THAT(asked, ElementsAre("/x?y=z&limit=250", "/x?y=z&limit=62", "/x?y=z&limit=15"));
}

TEST(Pages, AnswersThatNeverEndAreGivenUpSoon) {
  int asked = 0;
  const auto get = [&](const std::string&) -> Result<json::Document> {
    ++asked;
    return Error(Errc::TooLarge, "too large");
  };
  EXPECT_EQ(each_page(get, "/x", [](json::Value) {}).error().code(), Errc::TooLarge);
  EXPECT_EQ(asked, 5);
}

TEST(Pages, OneThatIsDamagedIsNotAskedForAgain) {
  int asked = 0;
  const auto get = [&](const std::string&) {
    ++asked;
    return json::Document::parse("{");
  };
  EXPECT_EQ(each_page(get, "/x", [](json::Value) {}).error().code(), Errc::Corrupt);
  EXPECT_EQ(asked, 1);
}

TEST(Pages, ADocumentBeyondTheParsersLimitIsAskedForInSmallerParts) {
  int asked = 0;
  const auto get = [&](const std::string&) {
    return json::Document::parse(++asked == 1 ? std::string(json::kSizeLimit + 1, ' ') : "{}");
  };
  EXPECT_TRUE(each_page(get, "/x", [](json::Value) {}).ok());
  EXPECT_EQ(asked, 2);
}

TEST(Pages, ARefusalIsHandedOnAndAListWithoutAnEndIsNotReadForEver) {
  const auto refuse = [](const std::string&) -> Result<json::Document> {
    return Error(Errc::Denied, "no");
  };
  EXPECT_EQ(each_page(refuse, "/x", [](json::Value) {}).error().code(), Errc::Denied);
  const auto more = [](const std::string&) -> Result<json::Document> {
    return test::parsed(R"({"metadata":{"continue":"x"}})");
  };
  EXPECT_EQ(each_page(more, "/x", [](json::Value) {}).error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::kube
