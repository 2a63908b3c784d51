// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/log.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(EngineLog, HasTheFormatThatTheEngineAskedFor) {
  const test::Tree tree;
  report_error({.log = tree.path("json"), .log_format = "json"}, "no \"GPU\"");
  report_error({.log = tree.path("text")}, "no \"GPU\"");
  EXPECT_THAT(*tree.host().read("/json"),
              StartsWith(R"({"level":"error","msg":"no \"GPU\"","time":")"));
  EXPECT_THAT(*tree.host().read("/text"), EndsWith("level=error msg=\"no \\\"GPU\\\"\"\n"));
}

TEST(ReportError, AnImagesWordsAreNoCommandsToATerminal) {
  ::testing::internal::CaptureStderr();
  report_error({}, "no device \"\x1b[2J\x1b]0;title\x07\"\nall is well");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "gantry-runtime: no device \"\\x1b[2J\\x1b]0;title\\x07\"\\x0aall is well\n");
}

// containerd and docker decode it and print it to their user.
TEST(EngineLog, AnImagesWordsAreNoCommandsToTheTerminalOfTheEnginesUser) {
  const test::Tree tree;
  report_error({.log = tree.path("json"), .log_format = "json"}, "no device \x1b[2J");
  EXPECT_THAT(*tree.host().read("/json"), HasSubstr(R"("msg":"no device \\x1b[2J")"));
}

}  // namespace
}  // namespace gantry::runtime
