// SPDX-License-Identifier: Apache-2.0
#include "base/core/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace gantry {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error(Errc::Invalid, "odd number");
  return n / 2;
}

Result<int> quarter(int n) {
  GANTRY_TRY(int once, half(n));
  GANTRY_TRY(int twice, half(once).in("second half"));
  return twice;
}

Status check_even(int n) {
  GANTRY_CHECK(half(n));
  return {};
}

TEST(Result, CarriesAValue) {
  EXPECT_EQ(*quarter(8), 2);
}

TEST(Result, TellsWhereItFailed) {
  auto result = quarter(6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::Invalid);
  EXPECT_EQ(result.error().text(), "second half: odd number");
}

TEST(Result, StatusSucceedsWithoutAValue) {
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_FALSE(check_even(3).ok());
}

TEST(Error, KeepsErrnoAndMapsIt) {
  auto error = Error::sys(ENOENT, "open /nowhere").in("reading");
  EXPECT_EQ(error.code(), Errc::NotFound);
  EXPECT_EQ(error.sys_errno(), ENOENT);
  EXPECT_EQ(error.text(), "reading: open /nowhere: No such file or directory");
}

TEST(ResultDeathTest, UsingTheValueOfAFailureAborts) {
  EXPECT_DEATH((void)*half(1), "odd number");
}

}  // namespace
}  // namespace gantry
