// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"

#include <gtest/gtest.h>

namespace gantry {
namespace {

TEST(Base64, IsReadWithWhiteSpaceAndWithoutPadding) {
  EXPECT_EQ(*from_base64("aGVsbG8gd29ybGQ="), "hello world");
  EXPECT_EQ(*from_base64("aGVs\nbG8="), "hello");
  EXPECT_EQ(*from_base64("aGVsbG8"), "hello");
}

TEST(Base64, RefusesWhatIsNone) {
  EXPECT_FALSE(from_base64("a*b").ok());
  EXPECT_FALSE(from_base64("YQ==YQ==").ok());
}

TEST(Base64, ComesBackAsItWas) {
  std::string bytes;
  for (int i = 0; i < 260; ++i) {
    EXPECT_EQ(*from_base64(to_base64(bytes)), bytes);
    bytes.push_back(static_cast<char>(i));
  }
  EXPECT_EQ(to_base64("hello"), "aGVsbG8=");
}

}  // namespace
}  // namespace gantry
