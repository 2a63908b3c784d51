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

TEST(Error, KeepsCauseAndRemedyApart) {
  const auto error = Error(Errc::NotFound, "no driver; no GPU").advise("run `gantry doctor`");
  EXPECT_EQ(error.code(), Errc::NotFound);
  EXPECT_EQ(error.text(), "no driver; no GPU; run `gantry doctor`");
  EXPECT_EQ(error.cause(), "no driver; no GPU");
  EXPECT_EQ(error.remedy(), "run `gantry doctor`");
}

TEST(Error, WithoutARemedyTheTextIsTheCause) {
  for (const auto& error :
       {Error(Errc::Invalid, "a; b"), Error(Errc::Invalid, "a; b").advise("")}) {
    EXPECT_EQ(error.text(), "a; b");
    EXPECT_EQ(error.cause(), "a; b");
    EXPECT_EQ(error.remedy(), "");
  }
}

TEST(Error, ContextBelongsToTheCauseAndLeavesTheRemedy) {
  const Result<int> result = Error(Errc::Invalid, "odd number").advise("write 2");
  const auto outer = Result<int>(result).in("first half").in("container \"c\"");
  EXPECT_EQ(outer.error().text(), "container \"c\": first half: odd number; write 2");
  EXPECT_EQ(outer.error().cause(), "container \"c\": first half: odd number");
  EXPECT_EQ(outer.error().remedy(), "write 2");
  const auto sys = Error::sys(EACCES, "open /f").in("reading").advise("run it as root");
  EXPECT_EQ(sys.sys_errno(), EACCES);
  EXPECT_EQ(sys.text(), "reading: open /f: Permission denied; run it as root");
  EXPECT_EQ(sys.remedy(), "run it as root");
}

TEST(ResultDeathTest, UsingTheValueOfAFailureAborts) {
  EXPECT_DEATH((void)*half(1), "odd number");
}

}  // namespace
}  // namespace gantry
