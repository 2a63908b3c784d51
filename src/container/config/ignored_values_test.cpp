// SPDX-License-Identifier: Apache-2.0
#include "container/config/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WithoutEffect, TheDefaultsAllMeanSomething) {
  EXPECT_THAT(describe_ignored_values({}), IsEmpty());
}

TEST(WithoutEffect, AnUnknownFlagOrHookIsNamed) {
  Settings settings;
  settings.runtime.jit_cdi_feature_flags = {"disable-ipc-discoverer", "disable-nvsandboxutils"};
  settings.runtime.jit_cdi_disable_hooks = {"chmod", "update-ldcache"};
  EXPECT_THAT(describe_ignored_values(settings),
              ElementsAre(HasSubstr("flags: disable-nvsandboxutils has"),
                          HasSubstr("hooks: chmod has no effect")));
}

TEST(WithoutEffect, ATableOfAnotherModeIsNamed) {
  Settings settings;
  settings.runtime.mode = "cdi";
  settings.runtime.jit_cdi_disable_hooks = {"all"};
  EXPECT_THAT(describe_ignored_values(settings), ElementsAre(HasSubstr("jit-cdi.* has no effect")));
  EXPECT_FALSE(has_disabled_hook(settings, "update-ldcache"));
  settings.runtime.mode = "auto";
  EXPECT_THAT(describe_ignored_values(settings), IsEmpty());
  EXPECT_TRUE(has_disabled_hook(settings, "update-ldcache"));
  settings.runtime.cdi_default_kind = "acme.org/gpu";
  EXPECT_THAT(describe_ignored_values(settings), ElementsAre(HasSubstr("default-kind")));
}

TEST(WithoutEffect, WhatIsForOthersSaysForWhom) {
  Settings settings;
  settings.cli.root = "/run/nvidia/driver";
  settings.runtime.csv_compat_container_root = "/x";
  settings.ctk_path = "bin/nvidia-ctk";
  settings.features.allow_ldconfig_from_container = true;
  EXPECT_THAT(describe_ignored_values(settings),
              ElementsAre(HasSubstr("the classic prestart hook"), HasSubstr("Tegra"),
                          HasSubstr("nvidia-ctk.path"), HasSubstr("act on the host")));
  settings.cli.root = "/";
  settings.ctk_path = "/opt/bin/nvidia-ctk";
  EXPECT_THAT(describe_ignored_values(settings),
              ElementsAre(HasSubstr("Tegra"), HasSubstr("act on the host")));
}

TEST(CheckMode, CsvIsRefused) {
  Settings settings;
  EXPECT_TRUE(check_mode(settings).ok());
  settings.runtime.mode = "csv";
  const auto refused = check_mode(settings);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Unsupported);
  EXPECT_THAT(refused.error().text(), HasSubstr("mode = \"auto\""));
}

}  // namespace
}  // namespace gantry::config
