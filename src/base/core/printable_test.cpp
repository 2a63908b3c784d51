// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"

#include <gtest/gtest.h>

namespace gantry {
namespace {

TEST(Printable, TextIsLeftAsItIs) {
  EXPECT_EQ(printable("/etc/ld.so.cache: \"caf\xC3\xA9\" \\ 1 % {}"),
            "/etc/ld.so.cache: \"caf\xC3\xA9\" \\ 1 % {}");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ATerminalsCommandsAreShownNotSent) {
  EXPECT_EQ(printable("a\x1b[2Jb\x07\r\x7f"), "a\\x1b[2Jb\\x07\\x0d\\x7f");
  EXPECT_EQ(printable("a\nerror: b"), "a\\x0aerror: b");
  EXPECT_EQ(printable("\xC2\x9b"
                      "2J\xC2\xA9"),
            "\\x9b2J\xC2\xA9");
  EXPECT_EQ(printable("\x9b"
                      "2J\xC3"),
            "\\x9b2J\\xc3");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, ATextOfManyLinesKeepsThem) {
  EXPECT_EQ(printable_lines("a\n\x1b]0;b\n"), "a\n\\x1b]0;b\n");
}

}  // namespace
}  // namespace gantry
