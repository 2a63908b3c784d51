// SPDX-License-Identifier: Apache-2.0
#include "base/log/log.hpp"

#include "base/json/document.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const auto moment =
    std::chrono::system_clock::time_point(std::chrono::microseconds(1615441860170991));

std::string formatted(LogForm form, std::string_view text, LogFields fields = {},
                      LogLevel level = LogLevel::Warning) {
  return format_log_line(form, {.level = level,
                                .component = "health",
                                .text = text,
                                .fields = fields,
                                .time = moment,
                                .pid = 12});
}

class Lines {
 public:
  Log log(std::int64_t verbosity = 0) {
    return Log(LogForm::Plain, verbosity, [this](std::string_view line) { text_ += line; });
  }
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

TEST(LogLine, OfKlogHasTheFormThatOperatorsGrep) {
  EXPECT_THAT(
      formatted(LogForm::Klog, "device unhealthy", {{"gpu", "GPU-1"}, {"xid", 79}}),
      MatchesRegex(
          "W031[01] [0-9:]+\\.170991      12 health. device unhealthy gpu=\"GPU-1\" xid=79\n"));
}

TEST(LogLine, OfContainerCliDoesNotPadThePid) {
  EXPECT_THAT(formatted(LogForm::ContainerCli, "done", {}, LogLevel::Info),
              MatchesRegex("I031[01] [0-9:]+\\.170991 12 health. done\n"));
}

TEST(LogLine, OfJsonHasFieldsAsMembers) {
  const std::vector<std::string> ids{"a", "b"};
  EXPECT_EQ(formatted(LogForm::Json, "Allocate",
                      {{"n", std::uint64_t{7}}, {"ids", ids}, {"half", 0.5}, {"ok", true}}),
            R"({"time":"2021-03-11T05:51:00.170991Z","level":"warning","where":"health",)"
            R"("msg":"Allocate","n":7,"ids":["a","b"],"half":0.5,"ok":true})"
            "\n");
}

TEST(LogLine, OfJsonNamesTheGivenComponent) {
  EXPECT_EQ(format_log_line(
                LogForm::Json,
                {.component = "a", .text = "created", .time = moment, .component_key = "share"}),
            R"({"time":"2021-03-11T05:51:00.170991Z","level":"info","share":"a",)"
            R"("msg":"created"})"
            "\n");
  EXPECT_THAT(format_log_line(LogForm::Json, {.text = "started", .time = moment}),
              HasSubstr(R"("level":"info","msg":"started")"));
}

TEST(LogLine, HasLogrusForms) {
  EXPECT_EQ(formatted(LogForm::LogrusJson, "no \"GPU\"", {{"id", "c1"}}, LogLevel::Error),
            R"({"level":"error","msg":"no \"GPU\"","time":"2021-03-11T05:51:00Z","id":"c1"})"
            "\n");
  EXPECT_EQ(
      formatted(LogForm::Logrus, "a b", {{"id", "c1"}, {"why", "x y"}, {"none", ""}}),
      "time=\"2021-03-11T05:51:00Z\" level=warning msg=\"a b\" id=c1 why=\"x y\" none=\"\"\n");
}

TEST(LogLine, SeparatesTheRemedyOfAnError) {
  const auto error = Error(Errc::NotFound, "no driver").advise("run `gantry doctor`");
  EXPECT_THAT(formatted(LogForm::Klog, "cannot start", {{"err", error}}),
              EndsWith("cannot start err=\"no driver\" remedy=\"run `gantry doctor`\"\n"));
  EXPECT_THAT(formatted(LogForm::Json, "cannot start", {{"err", Error(Errc::Busy, "busy")}}),
              EndsWith("\"err\":\"busy\"}\n"));
}

TEST(LogLine, LeavesOutFieldsWithoutAValue) {
  EXPECT_THAT(formatted(LogForm::Klog, "a",
                        {{"n", std::optional<int>()},
                         {"m", std::optional(7U)},
                         LogField::unless_empty("why", "")}),
              EndsWith("health] a m=7\n"));
}

TEST(LogLine, TextFromOutsideStaysOnItsLine) {
  const LogFields fields = {{"name", "x\" y=\"1\nI0311 forged \x1b[2J"}};
  for (const auto form : {LogForm::Klog, LogForm::ContainerCli, LogForm::Logrus, LogForm::Plain}) {
    EXPECT_THAT(formatted(form, "a", fields),
                EndsWith("name=\"x\\\" y=\\\"1\\x0aI0311 forged \\x1b[2J\"\n"));
  }
  EXPECT_THAT(formatted(LogForm::Klog, "x\nI0311 forged \x1b[2J"),
              EndsWith("health] x\\x0aI0311 forged \\x1b[2J\n"));
  for (const auto form : {LogForm::Json, LogForm::LogrusJson}) {
    const auto document = json::Document::parse(formatted(form, "a\n\xff", fields));
    ASSERT_TRUE(document.ok());
    EXPECT_EQ((*document)["name"].string(), "x\" y=\"1\nI0311 forged \x1b[2J");
  }
}

TEST(Log, QuietLogWritesInfoOnlyWhenAsked) {
  Lines lines;
  lines.log().quiet().info("a", "mine");
  EXPECT_EQ(lines.take(), "");
  lines.log().quiet().warning("a", "trouble");
  lines.log(1).quiet().info("a", "mine");
  EXPECT_EQ(lines.take(), "a: trouble\na: mine\n");
}

TEST(Log, WritesDetailsOnlyWhenAsked) {
  Lines lines;
  const auto log = lines.log(2);
  log.detail(3, "a", "too much");
  log.detail(2, "", "this", {{"n", 1}});
  EXPECT_EQ(lines.take(), "this n=1\n");
}

TEST(Log, LeavesOutWhatIsLessSevereThanItsLevel) {
  Lines lines;
  const auto log = lines.log().starting_at(parse_log_level("warn"));
  log.debug("a", "1");
  log.info("a", "2");
  log.warning("a", "3");
  log.error("a", "4");
  EXPECT_EQ(lines.take(), "a: 3\na: 4\n");
  lines.log().starting_at(parse_log_level("panic")).error("a", "5");
  lines.log().starting_at(parse_log_level("verbose")).debug("a", "6");
  EXPECT_EQ(lines.take(), "");
  lines.log().starting_at(parse_log_level("trace")).debug("a", "7");
  EXPECT_EQ(lines.take(), "a: 7\n");
}

TEST(Log, AppendsToItsFile) {
  test::Tree tree;
  const Log log(LogForm::Plain, 0, append_to_file(tree.path("log")));
  log.info("", "one");
  log.info("", "two");
  EXPECT_EQ(*tree.host().read("/log"), "one\ntwo\n");
}

TEST(Log, ThatCannotBeWrittenStopsNothing) {
  Log(LogForm::Plain, 0, append_to_file("/nowhere/log")).info("", "one");
  Log(LogForm::Plain, 0, append_to_file("")).info("", "one");
}

}  // namespace
}  // namespace gantry
