// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/configure_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::runtime {
namespace {

using model::Capability;
using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string>;

ConfigureOptions parsed(const Words& words) {
  auto options = parse_configure(words);
  EXPECT_TRUE(options.ok()) << (options.ok() ? "" : options.error().text());
  return options.ok() ? *std::move(options) : ConfigureOptions{};
}

std::string refused(const Words& words) {
  const auto options = parse_configure(words);
  EXPECT_FALSE(options.ok());
  return options.ok() ? "" : options.error().text();
}

TEST(ConfigureOptions, HelpNamesEveryOptionWithItsMeaning) {
  const auto help = configure_help();
  EXPECT_THAT(help, HasSubstr("  -p, --pid=PID                   A process of the container"));
  EXPECT_THAT(
      help,
      HasSubstr("      --no-cgroups                Do not change the container's device rules"));
  EXPECT_TRUE(asks_for_help(Words{"configure", "--help"}));
  EXPECT_FALSE(asks_for_help(Words{"configure", "--pid=1", "/rootfs"}));
}

TEST(ConfigureOptions, TheHooksWholeLineIsUnderstood) {
  const auto options = parsed({"--root=/run/nvidia/driver",
                               "--load-kmods",
                               "--no-create-imex-channels",
                               "--no-pivot",
                               "--debug=/var/log/x.log",
                               "--ldcache=/etc/ld.so.cache",
                               "--user=root:video",
                               "configure",
                               "--cuda-compat-mode=ldconfig",
                               "--ldconfig=@/sbin/ldconfig",
                               "--no-cgroups",
                               "--device=0,GPU-1,0",
                               "--mig-config=all",
                               "--mig-monitor=all",
                               "--imex-channel=0",
                               "--imex-channel=7",
                               "--compute",
                               "--utility",
                               "--video",
                               "--require=cuda>=12.0",
                               "--require=brand=tesla",
                               "--pid=71",
                               "/var/lib/x/rootfs"});
  EXPECT_EQ(options.root, "/run/nvidia/driver");
  EXPECT_TRUE(options.load_kernel_modules);
  EXPECT_TRUE(options.no_create_imex_channels);
  EXPECT_EQ(options.debug_file, "/var/log/x.log");
  EXPECT_EQ(options.user, "root:video");
  EXPECT_EQ(options.pid, 71);
  EXPECT_TRUE(options.no_cgroups);
  EXPECT_EQ(options.rootfs, "/var/lib/x/rootfs");
  EXPECT_THAT(options.request.devices, ElementsAre("0", "GPU-1"));
  EXPECT_THAT(options.request.imex_channels, ElementsAre(0, 7));
  EXPECT_THAT(options.request.requirements, ElementsAre("cuda>=12.0", "brand=tesla"));
  EXPECT_THAT(options.request.capabilities,
              ElementsAre(Capability::Compute, Capability::Utility, Capability::Video));
  EXPECT_TRUE(options.request.mig_config);
  EXPECT_TRUE(options.request.mig_monitor);
  EXPECT_EQ(options.request.source, model::RequestSource::CommandLine);
}

TEST(ConfigureOptions, OtherCommandsAreForOthers) {
  EXPECT_TRUE(is_configure(Words{"-k", "--debug", "info", "configure", "--bogus"}));
  EXPECT_FALSE(is_configure(Words{"-k", "info"}));
  EXPECT_FALSE(is_configure(Words{"--debug", "configure", "list"}));
  EXPECT_FALSE(is_configure(Words{"--help"}));
  EXPECT_FALSE(is_configure(Words{}));
}

TEST(ConfigureOptions, LettersMeanWhatTheirNamesMean) {
  const auto options = parsed({"-k", "-d", "/log", "-r", "/host", "configure", "-cu", "-p", "71",
                               "-d", "all", "-r", "cuda>=11", "/c"});
  EXPECT_TRUE(options.load_kernel_modules);
  EXPECT_EQ(options.debug_file, "/log");
  EXPECT_EQ(options.root, "/host");
  EXPECT_THAT(options.request.devices, ElementsAre("all"));
  EXPECT_THAT(options.request.requirements, ElementsAre("cuda>=11"));
  EXPECT_THAT(options.request.capabilities, ElementsAre(Capability::Compute, Capability::Utility));
  EXPECT_EQ(parsed({"configure", "-p71", "/c"}).pid, 71);
}

TEST(ConfigureOptions, UserMayBeGivenWithoutAName) {
  EXPECT_EQ(parsed({"--user", "configure", "-p1", "/c"}).user, "");
  EXPECT_EQ(parsed({"configure", "-p1", "/c"}).user, std::nullopt);
}

TEST(ConfigureOptions, NoDeviceMeansTheDriversFilesAlone) {
  EXPECT_THAT(parsed({"configure", "-p1", "/c"}).request.devices, ElementsAre("none"));
}

TEST(ConfigureOptions, ImagesLibrariesAreNeverMounted) {
  EXPECT_EQ(parsed({"configure", "-p1", "--cuda-compat-mode=mount", "/c"}).cuda_compat,
            CudaCompat::Ldconfig);
  EXPECT_EQ(parsed({"configure", "-p1", "--cuda-compat-mode=disabled", "/c"}).cuda_compat,
            CudaCompat::Disabled);
  EXPECT_EQ(parsed({"configure", "-p1", "--no-cntlibs", "/c"}).cuda_compat, CudaCompat::Disabled);
  EXPECT_THAT(refused({"configure", "-p1", "--cuda-compat-mode=x", "/c"}),
              HasSubstr("one of ldconfig, mount, disabled and hook"));
}

TEST(ConfigureOptions, TheRootMustBeADirectoryOfItsOwn) {
  for (const auto* root : {"/", "//", "/./", "/a/../..", "/.."}) {
    EXPECT_THAT(refused({"configure", "-p1", root}), HasSubstr("not the root of a container"))
        << root;
  }
  EXPECT_THAT(refused({"configure", "-p1", "c"}), HasSubstr("absolute path"));
  EXPECT_THAT(refused({"configure", "-p1"}), HasSubstr("root directory is missing"));
  EXPECT_THAT(refused({"configure", "-p1", "/a", "/b"}), HasSubstr("one root directory"));
}

TEST(ConfigureOptions, AnLdconfigOfTheImageIsRefused) {
  EXPECT_THAT(refused({"configure", "-p1", "--ldconfig=/sbin/ldconfig", "/c"}),
              HasSubstr("ldcache error: /sbin/ldconfig is a program of the container"));
}

TEST(ConfigureOptions, WhatCannotBeMeantIsNamed) {
  EXPECT_THAT(refused({}), HasSubstr("\"configure\" is missing"));
  EXPECT_THAT(refused({"configure", "/c"}), HasSubstr("--pid=PID"));
  EXPECT_THAT(refused({"configure", "--pid=0", "/c"}), HasSubstr("not a process"));
  EXPECT_THAT(refused({"configure", "--pid=99999999999", "/c"}), HasSubstr("not a process"));
  EXPECT_THAT(refused({"configure", "--pid=-1", "/c"}), HasSubstr("not a process"));
  EXPECT_THAT(refused({"configure", "--bogus", "/c"}), HasSubstr("unrecognized option '--bogus'"));
  EXPECT_THAT(refused({"configure", "-Z", "/c"}), HasSubstr("unrecognized option '-Z'"));
  EXPECT_THAT(refused({"configure", "--compute=1", "/c"}), HasSubstr("takes no value"));
  EXPECT_THAT(refused({"configure", "--pid"}), HasSubstr("needs a value"));
  EXPECT_THAT(refused({"configure", "--imex-channel=1048576", "/c"}), HasSubstr("0 to 1048575"));
  EXPECT_THAT(refused({"configure", "--mig-config=0", "/c"}), HasSubstr("only \"all\""));
}

}  // namespace
}  // namespace gantry::runtime
