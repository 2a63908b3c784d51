// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/profile_name.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string parsed(std::string_view text) {
  const auto name = parse_profile_name(text);
  return name.ok() ? to_string(*name) : "refused";
}

TEST(ProfileName, KeepsEveryPart) {
  const auto name = parse_profile_name("1c.3g.71gb+me.all,gfx");
  ASSERT_TRUE(name.ok()) << name.error().text();
  EXPECT_EQ(name->compute_slices, 1U);
  EXPECT_EQ(name->gpu_slices, 3U);
  EXPECT_EQ(name->memory_gb, 71U);
  EXPECT_THAT(name->with, ElementsAre("gfx", "me.all"));
  EXPECT_THAT(parse_profile_name("1g.24gb-me")->without, ElementsAre("me"));
}

TEST(ProfileName, PrintsWhatItReads) {
  for (const auto* text : {"3g.71gb", "1c.3g.71gb", "1g.18gb+me", "1g.24gb+me.all", "1g.24gb-me",
                           "1g.24gb+gfx", "1c.2g.12gb+me", "0g.0gb", "7g.141gb"}) {
    EXPECT_EQ(parsed(text), text);
  }
}

TEST(ProfileName, LeavesOutTheComputePartOfAWholeInstance) {
  EXPECT_EQ(parsed("3c.3g.71gb"), "3g.71gb");
  EXPECT_EQ(to_string(parse_profile_name("1c.3g.71gb")->gpu_instance()), "3g.71gb");
  EXPECT_EQ(to_string(parse_profile_name("3g.71gb")->with_compute(2)), "2c.3g.71gb");
}

TEST(ProfileName, RefusesOtherTexts) {
  for (const auto* text :
       {"",           "bogus",      "1g",          "1g.",         ".5gb",       "1g.5",
        "g.5gb",      "1g.gb",      "1.5gb",       "1c.5gb",      "1g.1g.5gb",  "1c.1g.5gb.me",
        "1g.5gb+",    "1g.5gb+me,", "1g.5gb+,me",  "1g.5gb+me+x", "1g.5gb+1me", "1g.5gb+.me",
        "1g.5gb+me.", "1g.5gb-",    "1g.5gb+me-x", "1g.5gb-me+x", " 1g.5gb",    "1g.5gb ",
        "1 g.5gb",    "1g. 5gb",    "1g.5gb+ me",  "1g.5gb+m_e",  "1g.5GB",     "1g.5gb+me,me",
        "-1g.5gb",    "+1g.5gb",    "1g..5gb",     "1.1g.5gb",    "999999g.5gb"}) {
    EXPECT_EQ(parsed(text), "refused") << text;
  }
  EXPECT_EQ(parsed(std::string(100'000, '1') + "g.5gb"), "refused");
}

TEST(ProfileName, SaysWhatANameLooksLike) {
  const auto name = parse_profile_name("3g.71\n");
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().code(), Errc::Invalid);
  EXPECT_THAT(name.error().text(), HasSubstr("\"3g.71\\x0a\" is not the name of a MIG profile"));
  EXPECT_THAT(name.error().text(), HasSubstr("1c.3g.71gb"));
}

TEST(ProfileName, HasAFormForResources) {
  for (const auto& [name, form] :
       std::vector<std::pair<std::string, std::string>>{{"1g.18gb", "1g.18gb"},
                                                        {"1g.18gb+me", "1g.18gb.me"},
                                                        {"1g.24gb+me.all", "1g.24gb.me.all"},
                                                        {"1g.24gb-me", "1g.24gb-me"},
                                                        {"1c.2g.12gb+me", "1c.2g.12gb.me"}}) {
    EXPECT_EQ(to_resource_form(*parse_profile_name(name)), form);
    const auto back = parse_resource_form(form);
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(to_string(*back), name);
  }
}

}  // namespace
}  // namespace gantry::mig
