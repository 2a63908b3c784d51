// SPDX-License-Identifier: Apache-2.0
#include "doctor/examine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;

TEST(Checks, HaveDistinctIdsAndAllTheirWords) {
  std::set<std::string_view> ids;
  for (const auto* check : all_checks()) {
    EXPECT_TRUE(ids.insert(check->id).second) << check->id;
    EXPECT_FALSE(check->reference.empty()) << check->id;
    EXPECT_FALSE(check->title.empty()) << check->id;
    EXPECT_FALSE(check->reads.empty()) << check->id;
    EXPECT_FALSE(check->cause.empty()) << check->id;
    EXPECT_FALSE(check->remedy.empty()) << check->id;
    EXPECT_NE(check->judge, nullptr) << check->id;
  }
}

TEST(Checks, ThatAreSafeToFixKnowHow) {
  for (const auto* check : all_checks()) {
    if (check->fix_class == FixClass::Automatic) {
      EXPECT_NE(check->fix, nullptr) << check->id;
    }
    if (check->fix_class == FixClass::Never) {
      EXPECT_EQ(check->fix, nullptr) << check->id;
    }
  }
}

TEST(Select, TakesIdsPatternsAndReferenceNumbers) {
  EXPECT_EQ(select({.only = {"numa.unknown"}, .skip = {}})->size(), 1U);
  EXPECT_EQ(select({.only = {"H15"}, .skip = {}})->front()->id, "numa.unknown");
  const auto nodes = select({.only = {"node.*"}, .skip = {"node.missing"}});
  ASSERT_TRUE(nodes.ok());
  EXPECT_GT(nodes->size(), 3U);
  for (const auto* check : *nodes) EXPECT_NE(check->id, "node.missing");
}

TEST(Select, NamesNearbyChecksWhenOneIsUnknown) {
  const auto chosen = select({.only = {"numa.unknwon"}, .skip = {}});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code(), Errc::Invalid);
  EXPECT_THAT(chosen.error().text(), HasSubstr("numa.unknown"));
}

}  // namespace
}  // namespace gantry::doctor
