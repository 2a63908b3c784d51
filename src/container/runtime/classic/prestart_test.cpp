// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/prestart.hpp"

#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using model::Capability;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

TEST(Prestart, FlagsAreTakenInGosManner) {
  const auto options =
      parse_prestart(Words{"-config", "/a.toml", "--root=/tree", "-debug", "prestart"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->config, "/a.toml");
  EXPECT_EQ(options->root, "/tree");
  EXPECT_TRUE(options->debug);
  EXPECT_EQ(options->command, "prestart");
  EXPECT_EQ(parse_prestart(Words{"-config=/b.toml"})->config, "/b.toml");
  EXPECT_TRUE(parse_prestart(Words{"--version"})->version);
  EXPECT_TRUE(parse_prestart(Words{"--help"})->help);
}

TEST(Prestart, OtherFlagsAreRefused) {
  EXPECT_FALSE(parse_prestart(Words{"-configure", "x"}).ok());
  EXPECT_FALSE(parse_prestart(Words{"-config"}).ok());
  EXPECT_FALSE(parse_prestart(Words{"prestart", "poststop"}).ok());
}

TEST(Prestart, TheLineHasUpstreamsWordsInUpstreamsOrder) {
  config::Settings settings;
  settings.cli.user = "root:video";
  settings.cli.no_cgroups = true;
  settings.cli.no_pivot = true;
  settings.cli.debug = "/var/log/x.log";
  settings.cli.ldcache = "/etc/ld.so.cache";
  settings.features.disable_imex_channel_creation = true;
  const model::ContainerRequest request{.devices = {"0", "GPU-1"},
                                        .cdi_devices = {"nvidia.com/gpu=2"},
                                        .capabilities = {Capability::Compute, Capability::Utility},
                                        .requirements = {"cuda>=12.0"},
                                        .imex_channels = {0, 7},
                                        .mig_config = true,
                                        .mig_monitor = true};
  const auto words = configure_arguments(request, settings, "/run/nvidia/driver", 71, "/c/rootfs");
  ASSERT_TRUE(words.ok());
  EXPECT_THAT(
      *words,
      ElementsAre("--root=/run/nvidia/driver", "--load-kmods", "--no-create-imex-channels",
                  "--no-pivot", "--debug=/var/log/x.log", "--ldcache=/etc/ld.so.cache",
                  "--user=root:video", "configure", "--cuda-compat-mode=ldconfig",
                  "--ldconfig=@/sbin/ldconfig", "--no-cgroups", "--device=0,GPU-1,2",
                  "--mig-config=all", "--mig-monitor=all", "--imex-channel=0", "--imex-channel=7",
                  "--compute", "--utility", "--require=cuda>=12.0", "--pid=71", "/c/rootfs"));
}

TEST(Prestart, NoneIsNoDeviceFlag) {
  const auto words = configure_arguments({.devices = {"none"}}, {}, "/", 71, "/c");
  ASSERT_TRUE(words.ok());
  EXPECT_THAT(*words, Not(Contains(HasSubstr("--device"))));
  EXPECT_THAT(*words, Not(Contains(HasSubstr("--root"))));
}

TEST(Prestart, OtherPeoplesCdiDevicesNeedAnotherWay) {
  const auto words = configure_arguments({.cdi_devices = {"acme.org/nic=a"}}, {}, "/", 71, "/c");
  ASSERT_FALSE(words.ok());
  EXPECT_THAT(words.error().text(), HasSubstr("a prestart hook cannot add acme.org/nic=a"));
}

class PrestartBundle : public testing::Test {
 protected:
  Result<std::optional<ConfigureCall>> run(std::string_view environment,
                                           std::string_view config = "") {
    tree_.file("config.toml",
               fmt::format("{}\n[nvidia-container-cli]\npath = \"/opt/cli\"\nenvironment = "
                           "[\"A=b\"]\n[gantry]\nroot = \"{}\"\n",
                           config, tree_.root()));
    tree_.file("bundle/config.json",
               fmt::format(R"({{"process": {{"env": [{}]}}, "root": {{"path": "rootfs"}}}})",
                           environment));
    const PrestartOptions options{.config = tree_.path("config.toml"), .command = "prestart"};
    return prestart(options, fmt::format(R"({{"pid": 71, "bundle": "{}"}})", tree_.path("bundle")),
                    warnings_);
  }
  test::Tree tree_;
  std::vector<std::string> warnings_;
};

TEST_F(PrestartBundle, WithoutAWishNothingIsRun) {
  const auto call = run(R"("PATH=/bin")");
  ASSERT_TRUE(call.ok()) << call.error().text();
  EXPECT_FALSE(call->has_value());
}

TEST_F(PrestartBundle, AWishBecomesACommandWithTheConfigurationsEnvironmentAlone) {
  const auto call = run(R"("NVIDIA_VISIBLE_DEVICES=0", "LD_PRELOAD=/proc/self/cwd/poc.so")");
  ASSERT_TRUE(call.ok()) << call.error().text();
  ASSERT_TRUE(call->has_value());
  EXPECT_EQ((*call)->program, "/opt/cli");
  EXPECT_EQ((*call)->arguments.front(), "nvidia-container-cli");
  EXPECT_EQ((*call)->arguments.back(), tree_.path("bundle/rootfs"));
  EXPECT_THAT((*call)->arguments, Contains("--device=0"));
  EXPECT_THAT((*call)->arguments, Contains("--pid=71"));
  EXPECT_THAT((*call)->environment, ElementsAre("A=b"));
}

TEST_F(PrestartBundle, ThePolicyIsAskedHereToo) {
  const auto call = run(R"("NVIDIA_VISIBLE_DEVICES=all")",
                        "accept-nvidia-visible-devices-envvar-when-unprivileged = false");
  ASSERT_TRUE(call.ok()) << call.error().text();
  EXPECT_FALSE(call->has_value());
  EXPECT_THAT(warnings_, Contains(HasSubstr("NVIDIA_VISIBLE_DEVICES")));
}

TEST_F(PrestartBundle, MigRightsAreForPrivilegedContainers) {
  const auto call = run(R"("NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_MIG_CONFIG_DEVICES=all")");
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().code(), Errc::Denied);
  EXPECT_THAT(call.error().text(), HasSubstr("privileged"));
}

TEST_F(PrestartBundle, AModeThatIsNotLegacyIsRefused) {
  const auto call =
      run(R"("NVIDIA_VISIBLE_DEVICES=0")", "[nvidia-container-runtime]\nmode = \"cdi\"");
  ASSERT_FALSE(call.ok());
  EXPECT_THAT(call.error().text(), HasSubstr("mode = \"cdi\""));
  EXPECT_TRUE(run(R"("NVIDIA_VISIBLE_DEVICES=0")",
                  "[nvidia-container-runtime]\nmode = \"cdi\"\n[nvidia-container-runtime-hook]\n"
                  "skip-mode-detection = true")
                  .ok());
}

TEST_F(PrestartBundle, HostileStatesAreErrors) {
  std::vector<std::string> warnings;
  const PrestartOptions options{.config = tree_.path("none.toml")};
  for (const auto* state : {"", "{}", "[]", R"({"pid": 71})", R"({"bundle": "/nowhere"})",
                            R"({"pid": -1, "bundle": "/b"})", R"({"pid": 0, "bundle": "/b"})"}) {
    EXPECT_FALSE(prestart(options, state, warnings).ok()) << state;
  }
}

}  // namespace
}  // namespace gantry::runtime
