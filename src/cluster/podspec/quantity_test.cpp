// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/quantity.hpp"

#include <gtest/gtest.h>

namespace gantry::podspec {
namespace {

std::uint64_t whole(std::string_view text) {
  const auto quantity = parse_quantity(text);
  EXPECT_TRUE(quantity.ok()) << text;
  EXPECT_TRUE(!quantity.ok() || quantity->whole()) << text;
  return quantity.ok() ? quantity->value : 0;
}

TEST(Quantity, KnowsEverySpellingOfAWholeNumber) {
  EXPECT_EQ(whole("10"), 10U);
  EXPECT_EQ(whole("+10"), 10U);
  EXPECT_EQ(whole("010"), 10U);
  EXPECT_EQ(whole("10."), 10U);
  EXPECT_EQ(whole("10.000"), 10U);
  EXPECT_EQ(whole("2k"), 2000U);
  EXPECT_EQ(whole("1e3"), 1000U);
  EXPECT_EQ(whole("1E3"), 1000U);
}

TEST(Quantity, ScalesFractions) {
  EXPECT_EQ(whole("1.5k"), 1500U);
  EXPECT_EQ(whole("1000m"), 1U);
  EXPECT_EQ(whole("30e-1"), 3U);
  EXPECT_EQ(whole("1.5Ki"), 1536U);
  EXPECT_EQ(whole("0.5Ei"), std::uint64_t{1} << 59);
}

TEST(Quantity, SaysWhatIsLeftOfAFraction) {
  EXPECT_EQ(*parse_quantity("0.5"), (Quantity{.value = 0, .milli = 500}));
  EXPECT_EQ(*parse_quantity("250m"), (Quantity{.value = 0, .milli = 250}));
  EXPECT_EQ(*parse_quantity("3.25"), (Quantity{.value = 3, .milli = 250}));
  EXPECT_EQ(*parse_quantity("1n"), (Quantity{.value = 0, .milli = 1}));
  EXPECT_EQ(*parse_quantity("1e-999"), (Quantity{.value = 0, .milli = 1}));
  EXPECT_EQ(*parse_quantity("1.3Ki"), (Quantity{.value = 1331, .milli = 1, .binary = true}));
}

TEST(Quantity, EndsBelowTwoToThe63) {
  EXPECT_EQ(whole("9223372036854775807"), 9223372036854775807U);
  EXPECT_EQ(whole("9E"), 9'000'000'000'000'000'000U);
  EXPECT_EQ(whole("7Ei"), std::uint64_t{7} << 60);
  EXPECT_EQ(whole("0e999"), 0U);
  for (const auto* text :
       {"9223372036854775808", "18446744073709551616", "10E", "8Ei", "1e19", "1e999",
        "99999999999999999999999999999999999999Ki", "9999999999999999999Ei"})
    EXPECT_FALSE(parse_quantity(text).ok()) << text;
}

TEST(Quantity, IsNothingElse) {
  for (const auto* text : {"",     " 1",  "1 ",   ".",   "k",  "-",    "+",   "--1",   "1.2.3",
                           "0x10", "1kk", "1Kii", "1 i", "ki", "1e",   "1e+", "1e1.5", "1e9999",
                           "NaN",  "inf", "1,5",  "1K",  "-1", "-0.5", "1\n"})
    EXPECT_FALSE(parse_quantity(text).ok()) << text;
  EXPECT_EQ(whole("-0"), 0U);
  EXPECT_FALSE(parse_quantity(std::string(65, '1')).ok());
}

TEST(Quantity, IsAStringOrANumber) {
  const auto document = json::Document::parse(R"([1, "1", 1e0, null, [], {}, true])");
  for (std::size_t at = 0; at < 3; ++at)
    EXPECT_EQ(read_quantity(document->root().element(at))->value, 1U);
  for (std::size_t at = 3; at < 8; ++at)
    EXPECT_FALSE(read_quantity(document->root().element(at)).ok()) << at;
}

}  // namespace
}  // namespace gantry::podspec
