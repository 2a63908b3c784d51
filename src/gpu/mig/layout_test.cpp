// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/layout.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string reread_words(std::string_view words) {
  const auto request = parse_layout(words);
  return request.ok() ? to_words(*request) : request.error().text();
}

TEST(MigLayout, ReadsCountsPlacesAndComputeSlices) {
  const auto request = parse_layout("3g.71gb@4=1+2, 2x1g.18gb,1g.18gb+me");
  ASSERT_TRUE(request.ok()) << request.error().text();
  ASSERT_EQ(request->instances.size(), 3U);
  EXPECT_EQ(request->instances[0].start, 4U);
  EXPECT_THAT(request->instances[0].compute_slices, ElementsAre(1U, 2U));
  EXPECT_EQ(request->instances[1].count, 2U);
  EXPECT_EQ(to_string(request->instances[2].profile), "1g.18gb+me");
}

TEST(MigLayout, PrintsWhatItReads) {
  for (const auto* words :
       {"3g.71gb,2g.35gb,1g.18gb", "2x1g.18gb", "3g.71gb@4", "3g.20gb=1+2", "3x1c.3g.71gb",
        "1c.3g.71gb@0", "3g.71gb=0", "off", "on", "1g.24gb-me"}) {
    EXPECT_EQ(reread_words(words), words);
  }
  EXPECT_EQ(reread_words("all-disabled"), "off");
  EXPECT_EQ(reread_words(" all-enabled "), "on");
}

TEST(MigLayout, RefusesOtherWords) {
  EXPECT_THAT(reread_words(""), HasSubstr("the layout is empty; write instances such as"));
  EXPECT_THAT(reread_words("3g.71gb,"), HasSubstr("is not the name of a MIG profile"));
  EXPECT_THAT(reread_words("0x1g.18gb"), HasSubstr("the number of instances is 1 to 64"));
  EXPECT_THAT(reread_words("65x1g.18gb"), HasSubstr("the number of instances is 1 to 64"));
  EXPECT_THAT(reread_words("40x1g.18gb,40x1g.18gb"), HasSubstr("more than 64 instances"));
  EXPECT_THAT(reread_words("2x1g.18gb@3"), HasSubstr("only one instance can begin at a slice"));
  EXPECT_THAT(reread_words("1g.18gb@"), HasSubstr("after @ comes the first memory slice"));
  EXPECT_THAT(reread_words("1g.18gb@64"), HasSubstr("after @ comes the first memory slice"));
  EXPECT_THAT(reread_words("3g.71gb=1+"), HasSubstr("after = come compute slices"));
  EXPECT_THAT(reread_words("3g.71gb="), HasSubstr("after = come compute slices"));
  EXPECT_THAT(reread_words("1c.3g.71gb=1+1"), HasSubstr("the name already says"));
  EXPECT_THAT(reread_words(std::string(5000, '1')), HasSubstr("too long"));
}

TEST(MigLayout, ExplainsANumberThatCouldMeanTwoThings) {
  EXPECT_THAT(reread_words("3g.71gb=2"), HasSubstr("write 2x3g.71gb or 2c.3g.71gb"));
}

TEST(MigLayout, TakesCountsOfAConfigurationFile) {
  const auto request =
      request_from_counts({{"1g.18gb", 2}, {"2g.35gb", 0}, {"3g.71gb", 1}, {"1c.3g.71gb", 3}});
  ASSERT_TRUE(request.ok()) << request.error().text();
  EXPECT_EQ(to_words(*request), "3g.71gb,3x1c.3g.71gb,2x1g.18gb");
  EXPECT_FALSE(request_from_counts({{"bogus", 1}}).ok());
  EXPECT_FALSE(request_from_counts({{"1g.18gb", 65}}).ok());
}

TEST(MigLayout, SaysWhatTheGpuHas) {
  MigGpu gpu{.current = model::MigMode::Enabled};
  gpu.instances = {{.id = 2,
                    .profile = "3g.71gb",
                    .place = {0, 4},
                    .compute = {{.profile = "1c.3g.71gb", .place = {0, 1}, .uuid = {}},
                                {.profile = "2c.3g.71gb", .place = {1, 2}, .uuid = {}}}},
                   {.id = 5,
                    .profile = "2g.35gb",
                    .place = {4, 2},
                    .compute = {{.profile = "2g.35gb", .place = {0, 2}, .uuid = {}}}}};
  EXPECT_EQ(to_words(current_layout(gpu)), "3g.71gb@0=1+2,2g.35gb@4");
  EXPECT_THAT(current_counts(gpu),
              ElementsAre(Pair("1c.3g.71gb", 1U), Pair("2c.3g.71gb", 1U), Pair("2g.35gb", 1U)));
  gpu.current = model::MigMode::Disabled;
  EXPECT_EQ(to_words(current_layout(gpu)), "off");
}

}  // namespace
}  // namespace gantry::mig
