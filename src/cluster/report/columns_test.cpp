// SPDX-License-Identifier: Apache-2.0
#include "cluster/report/columns.hpp"

#include <gtest/gtest.h>

namespace gantry::report {
namespace {

TEST(Columns, ACellIsAsWideAsTheWidestOfItsColumnAndTwoBlanks) {
  EXPECT_EQ(align_columns("a\tb\tc\nlong\tx\ty\n"), "a     b  c\nlong  x  y\n");
}

TEST(Columns, WhatFollowsTheLastTabIsInNoColumn) {
  EXPECT_EQ(align_columns("a\tall the rest is long\nb\tc\n"), "a  all the rest is long\nb  c\n");
}

TEST(Columns, ACellThatATabEndsIsPaddedAlsoAtTheEndOfItsLine) {
  EXPECT_EQ(align_columns("9/30 (30%)\t\n"), "9/30 (30%)  \n");
}

TEST(Columns, ALineWithoutTheCellEndsTheColumn) {
  EXPECT_EQ(align_columns("wide cell\tx\nno tab\na\ty\n"), "wide cell  x\nno tab\na  y\n");
  EXPECT_EQ(align_columns("a\tb\tc\nlonger\td\ne\tfff\tg\n"),
            "a       b  c\nlonger  d\ne       fff  g\n");
}

TEST(Columns, AnEmptyCellKeepsItsPlace) {
  EXPECT_EQ(align_columns("a\t\tb\nc\td\te\n"), "a     b\nc  d  e\n");
}

TEST(Columns, WidthsAreCountedInLettersNotBytes) {
  EXPECT_EQ(align_columns("é\tx\nab\ty\n"), "é   x\nab  y\n");
}

}  // namespace
}  // namespace gantry::report
