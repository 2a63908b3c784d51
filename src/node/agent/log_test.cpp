// SPDX-License-Identifier: Apache-2.0
#include "node/agent/log.hpp"

#include "base/json/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;

const auto moment =
    std::chrono::system_clock::time_point(std::chrono::microseconds(1615441860170991));

TEST(AgentLog, TextHasTheFormThatOperatorsGrep) {
  EXPECT_THAT(
      log_line(options::LogFormat::Text, Severity::Info, "nvidia_gpu.go:67",
               "device-plugin started", moment, 1),
      MatchesRegex("I0311 [0-9:]+\\.170991       1 nvidia_gpu.go:67. device-plugin started\n"));
}

TEST(AgentLog, WhatComesFromOutsideStaysOnItsLine) {
  EXPECT_THAT(log_line(options::LogFormat::Text, Severity::Error, "a", "x\nI0311 forged \x1b[2J",
                       moment, 1),
              EndsWith("a] x\\x0aI0311 forged \\x1b[2J\n"));
}

TEST(AgentLog, JsonLinesAreJson) {
  const auto line =
      log_line(options::LogFormat::Json, Severity::Warning, "kubelet", "a \"b\"\n", moment, 1);
  const auto document = json::Document::parse(line);
  ASSERT_TRUE(document.ok()) << line;
  EXPECT_EQ((*document)["level"].string(), "warning");
  EXPECT_EQ((*document)["msg"].string(), "a \"b\"\n");
  EXPECT_EQ((*document)["time"].string(), "2021-03-11T05:51:00.170991Z");
}

TEST(AgentLog, BesideOthersLinesItsOwnAreSaidWhenAskedFor) {
  std::string said;
  const auto sink = [&](std::string_view line) { said += line; };
  Log(options::LogFormat::Text, 0, sink).quiet_copy().info("a", "mine");
  EXPECT_EQ(said, "");
  Log(options::LogFormat::Text, 0, sink).quiet_copy().warning("a", "trouble");
  Log(options::LogFormat::Text, 1, sink).quiet_copy().info("a", "mine");
  EXPECT_THAT(said, testing::AllOf(testing::HasSubstr("trouble"), EndsWith("mine\n")));
}

TEST(AgentLog, DetailsAreSaidOnlyWhenAskedFor) {
  std::string said;
  const Log log(options::LogFormat::Text, 2, [&](std::string_view line) { said += line; });
  log.detail(3, "a", "too much");
  EXPECT_EQ(said, "");
  log.detail(2, "a", "this");
  EXPECT_THAT(said, EndsWith("this\n"));
}

}  // namespace
}  // namespace gantry::agent
