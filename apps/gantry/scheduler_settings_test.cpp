// SPDX-License-Identifier: Apache-2.0
#include "gantry/scheduler.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gantry::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Variables = std::map<std::string, std::string, std::less<>>;

Result<SchedulerSettings> settings_of(const SchedulerFlags& flags,
                                      const Variables& variables = {}) {
  return scheduler_settings(flags, [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(SchedulerSettings, GpusharesEnvironmentIsUnderstood) {
  const auto settings = settings_of(
      {}, {{"PORT", "39999"}, {"LOG_LEVEL", "debug"}, {"THREADNESS", "4"}, {"POD_NAME", "pod-7"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->options.address.port, 39999);
  EXPECT_EQ(settings->verbosity, 4);
  EXPECT_EQ(settings->options.threads, 4U);
  EXPECT_EQ(settings->options.lease.identity, "pod-7");
}

TEST(SchedulerSettings, AFlagIsStrongerThanTheEnvironment) {
  SchedulerFlags flags;
  flags.port = "7";
  EXPECT_EQ(settings_of(flags, {{"PORT", "39999"}})->options.address.port, 7);
}

TEST(SchedulerSettings, WithoutAnythingItListensWhereGpushareDoes) {
  const auto settings = settings_of({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->options.address.port, 12345);
  ASSERT_TRUE(settings->options.webhook);
  EXPECT_EQ(settings->options.webhook->address.port, 8443);
  EXPECT_EQ(settings->options.election, scheduler::Election::On);
  EXPECT_EQ(settings->options.lease.name_space, "kube-system");
}

TEST(SchedulerSettings, HamisWordsAreUnderstood) {
  SchedulerFlags flags;
  flags.address = "0.0.0.0:9443";
  flags.node_policy = "spread";
  flags.leader_elect = "false";
  const auto settings = settings_of(flags);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->options.address.host, "0.0.0.0");
  EXPECT_EQ(settings->options.address.port, 9443);
  EXPECT_EQ(settings->options.place.nodes, podspec::PlacementPolicy::Spread);
  EXPECT_EQ(settings->options.election, scheduler::Election::Off);
}

TEST(SchedulerSettings, WhatIsWrongIsNamedWithWhatWouldBeRight) {
  const auto text = [](auto change) {
    SchedulerFlags flags;
    change(flags);
    const auto settings = settings_of(flags);
    return settings.ok() ? std::string("accepted") : settings.error().text();
  };
  EXPECT_THAT(text([](auto& f) { f.port = "http"; }), HasSubstr("a number from 0 to 65535"));
  EXPECT_THAT(text([](auto& f) { f.node_policy = "random"; }), HasSubstr("binpack or spread"));
  EXPECT_THAT(text([](auto& f) { f.webhook = "maybe"; }), HasSubstr("on or off"));
  EXPECT_THAT(text([](auto& f) { f.memory_unit = "KB"; }), HasSubstr("`KB` is not GiB or MiB"));
  EXPECT_THAT(text([](auto& f) { f.key_file = "k"; }), HasSubstr("must be given together"));
  EXPECT_THAT(text([](auto& f) { f.lease_duration = "1s"; }), HasSubstr("6s to 3600s"));
}

TEST(SchedulerSettings, AWrongVariableIsCalledByItsName) {
  const auto text = [](const char* variable) {
    const auto settings = settings_of({}, {{variable, "x"}});
    return settings.ok() ? std::string("accepted") : settings.error().text();
  };
  for (const auto* variable : {"PORT", "TLS_PORT", "THREADNESS", "LOG_LEVEL", "MEMORY_UNIT"})
    EXPECT_THAT(text(variable), StartsWith(std::string(variable) + ": `x` is not"));
}

TEST(SchedulerCommand, ShowsItsFlagsAndExamples) {
  const auto run = test::run_cli({"gantry", "scheduler", "--help"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, HasSubstr("--leader-elect"));
  EXPECT_THAT(run.out, HasSubstr("Examples:"));
}

TEST(SchedulerCommand, TakesBooleansInEveryForm) {
  const auto status_with = [](const char* form) {
    return test::run_cli({"gantry", "scheduler", form, "--kubeconfig", "/nonexistent/kubeconfig"})
        .status;
  };
  EXPECT_EQ(status_with("--leader-elect"), 1);  // there is no such file
  EXPECT_EQ(status_with("--leader-elect=false"), 1);
  EXPECT_EQ(status_with("--leader-elect=nonsense"), 2);
}

}  // namespace
}  // namespace gantry::cli
