// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/run_checks.hpp"

#include "doctor/checks/all_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
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

// The classes of the list of known faults. A check may be stricter than its fault, never laxer.
TEST(Checks, AreFixedAsFreelyAsTheListOfKnownFaultsAllows) {
  const std::map<std::string_view, std::string_view> classes{
      {"H1", "N"},  {"H2", "N"},  {"H3", "R"},  {"H5", "R"},  {"H6", "R"},  {"H7", "N"},
      {"H8", "R"},  {"H10", "A"}, {"H11", "R"}, {"H13", "A"}, {"H15", "R"}, {"H18", "R"},
      {"H19", "R"}, {"H20", "R"}, {"H21", "N"}, {"H22", "A"}, {"H23", "A"}, {"H24", "R"},
      {"H25", "R"}, {"H26", "R"}, {"H30", "R"}, {"H32", "R"}, {"H33", "R"}, {"H34", "N"},
      {"H35", "A"}, {"H36", "R"}, {"H38", "R"}, {"C2", "R"},  {"C8", "A"},  {"K3", "A"},
      {"K4", "R"},  {"K5", "R"}};
  const std::set<std::string_view> stricter{
      "module.blacklist",    // somebody wrote that line
      "cdi.duplicate",       // one of two files would have to go
      "nvml.answers",        // its causes have checks of their own
      "fabric.peer-memory",  // not everybody wants the module
      "crio.config",         // a person knows which value was meant
  };
  for (const auto* check : all_checks()) {
    const auto found = classes.find(check->reference);
    if (found == classes.end() || stricter.contains(check->id)) continue;
    EXPECT_EQ(letter(check->fix_class), found->second) << check->id << " " << check->reference;
  }
}

TEST(Checks, OfClassAOrRHaveStepsOrSayWhyNot) {
  for (const auto* check : all_checks()) {
    if (check->fix_class == FixClass::Never) continue;
    EXPECT_TRUE(check->fix != nullptr || !check->by_hand.empty()) << check->id;
  }
}

TEST(Select, TakesIdsPatternsAndReferenceNumbers) {
  EXPECT_EQ(select(all_checks(), {.only = {"numa.unknown"}, .skip = {}})->size(), 1U);
  EXPECT_EQ(select(all_checks(), {.only = {"H15"}, .skip = {}})->front()->id, "numa.unknown");
  const auto nodes = select(all_checks(), {.only = {"node.*"}, .skip = {"node.missing"}});
  ASSERT_TRUE(nodes.ok());
  EXPECT_GT(nodes->size(), 3U);
  for (const auto* check : *nodes) EXPECT_NE(check->id, "node.missing");
}

TEST(Select, NamesNearbyChecksWhenOneIsUnknown) {
  const auto chosen = select(all_checks(), {.only = {"numa.unknwon"}, .skip = {}});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code(), Errc::Invalid);
  EXPECT_THAT(chosen.error().text(), HasSubstr("numa.unknown"));
}

}  // namespace
}  // namespace gantry::doctor
