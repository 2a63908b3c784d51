// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/log.hpp"

#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

TEST(Log, LinesHaveLogrusForms) {
  EXPECT_EQ(log_line("json", "error", "no \"GPU\"", 0),
            "{\"level\":\"error\",\"msg\":\"no \\\"GPU\\\"\",\"time\":\"1970-01-01T00:00:00Z\"}\n");
  EXPECT_EQ(log_line("text", "warning", "a b", 86399),
            "time=\"1970-01-01T23:59:59Z\" level=warning msg=\"a b\"\n");
}

TEST(Log, AnImagesWordsAreNoCommandsToATerminal) {
  ::testing::internal::CaptureStderr();
  report_error({}, "no device \"\x1b[2J\x1b]0;title\x07\"\nall is well");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "gantry-runtime: no device \"\\x1b[2J\\x1b]0;title\\x07\"\\x0aall is well\n");
}

TEST(Log, KeepsWhatIsAsGraveAsItsLevel) {
  EXPECT_TRUE(is_logged("info", "info"));
  EXPECT_TRUE(is_logged("debug", "error"));
  EXPECT_FALSE(is_logged("info", "debug"));
  EXPECT_FALSE(is_logged("error", "warning"));
  EXPECT_TRUE(is_logged("warn", "warning"));
  EXPECT_FALSE(is_logged("fatal", "error"));
}

TEST(Log, IsAppendedTo) {
  test::Tree tree;
  const CommandLine line{.log = tree.path("log"), .log_format = "json"};
  write_log(line, "error", "one");
  write_log(line, "error", "two");
  const auto text = *tree.host().read("/log");
  EXPECT_LT(text.find("one"), text.find("two"));
}

TEST(Log, ThatCannotBeWrittenStopsNothing) {
  write_log(CommandLine{.log = "/nowhere/log"}, "error", "one");
  write_log(CommandLine{}, "error", "one");
}

}  // namespace
}  // namespace gantry::runtime
