// SPDX-License-Identifier: Apache-2.0
#include "gantry/table.hpp"

#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

TEST(Table, LinesUpAndLeavesNoTrailingBlanks) {
  Table table({"GPU", "NAME", "NOTE"});
  table.add({"0", "NVIDIA H200", ""});
  table.add({"10", "T4", "lost"});
  EXPECT_EQ(table.text(),
            "GPU  NAME         NOTE\n"
            "0    NVIDIA H200\n"
            "10   T4           lost\n");
}

}  // namespace
}  // namespace gantry::cli
