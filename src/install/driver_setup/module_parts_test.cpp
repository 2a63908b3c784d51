// SPDX-License-Identifier: Apache-2.0
// How modules are built, checked and loaded, and what loads them at boot.
#include "install/driver_setup/boot_files.hpp"
#include "install/driver_setup/build_modules.hpp"
#include "install/driver_setup/device_nodes.hpp"
#include "install/driver_setup/live_effects.hpp"
#include "install/driver_setup/machine_for_test.hpp"
#include "install/driver_setup/module_options.hpp"
#include "install/driver_setup/verify.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace gantry::driver_setup {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ModuleOptions, AreThoseOfModprobe) {
  EXPECT_EQ(options_in_file("# options nvidia a=0\noptions nvidia NVreg_A=1 \\\n  NVreg_B=2\n"
                            "options nvidia-uvm c=3\noptions other d=4\n",
                            "nvidia"),
            "NVreg_A=1 NVreg_B=2");
  EXPECT_EQ(options_in_file("options nvidia_uvm uvm_debug_prints=1", "nvidia-uvm"),
            "uvm_debug_prints=1");
  EXPECT_EQ(
      options_in_command_line("quiet nvidia.NVreg_A=1 nvidia-drm.modeset=1 x.y a=b.c", "nvidia"),
      "NVreg_A=1");
  EXPECT_EQ(options_in_command_line("quiet nvidia-drm.modeset=1\n", "nvidia_drm"), "modeset=1");
}

TEST(ModuleOptions, AFileInEtcHidesTheDistributions) {
  test::Tree tree;
  tree.file("usr/lib/modprobe.d/nvidia.conf", "options nvidia a=1\n");
  tree.file("usr/lib/modprobe.d/other.conf", "options nvidia b=2\n");
  tree.file("etc/modprobe.d/nvidia.conf", "options nvidia a=3\n");
  tree.file("etc/modprobe.d/nvidia.bak", "options nvidia c=4\n");
  tree.file("proc/cmdline", "quiet nvidia.d=5\n");
  EXPECT_EQ(module_options(tree.host(), "nvidia"), "a=3 b=2 d=5");
}

TEST(MakeCommand, BuildsOutsideOfTheHeaders) {
  ModuleBuild build{.kernel = "6.1.0-21-amd64",
                    .source = "/source",
                    .directory = "/staging/build",
                    .destination = "/drivers",
                    .headers = {.directory = "/usr/src/linux-headers-6.1.0-21-amd64",
                                .source = "/usr/src/linux-headers-6.1.0-21-common"},
                    .compiler = "gcc-12",
                    .jobs = 4};
  const auto call = make_command(build);
  EXPECT_EQ(to_text(call),
            "make -C /staging/build -j4 KERNEL_UNAME=6.1.0-21-amd64 "
            "SYSSRC=/usr/src/linux-headers-6.1.0-21-common "
            "SYSOUT=/usr/src/linux-headers-6.1.0-21-amd64 "
            "'NV_EXCLUDE_KERNEL_MODULES=nvidia-drm nvidia-peermem' CC=gcc-12 modules");
  EXPECT_THAT(call.needs, ElementsAre("make", "gcc-12", "ld"));
  EXPECT_EQ(call.place, ProgramPlace::Tools);
  build.headers.in_image = true;
  const auto in_image = make_command(build);
  EXPECT_EQ(to_text(in_image), to_text(call));
  EXPECT_EQ(in_image.place, ProgramPlace::Image);
  test::Tree machine;
  machine.file("usr/bin/make").file("usr/bin/gcc-12").file("usr/bin/ld");
  EXPECT_EQ(place_of_tools(machine.host(), call), ToolPlace::Machine);
  EXPECT_EQ(place_of_tools(machine.host(), in_image), ToolPlace::Here);
  const auto words = words_for(machine.host(), in_image, ToolPlace::Here);
  EXPECT_EQ(words[2], machine.host().outside("/staging/build"));
  EXPECT_EQ(words[5], "SYSSRC=/usr/src/linux-headers-6.1.0-21-common");
}

// make alone would take cc, which does not know the flags of a kernel that clang built.
TEST(MakeCommand, TakesClangAndItsLinkerForAKernelThatTheyBuilt) {
  ModuleBuild build{.kernel = "6.6.30", .directory = "/staging/build", .compiler = "clang-17"};
  EXPECT_THAT(to_text(make_command(build)),
              AllOf(HasSubstr(" CC=clang-17 modules"), Not(HasSubstr("LLVM="))));
  build.uses_lld = true;
  EXPECT_THAT(to_text(make_command(build)),
              HasSubstr(" LLVM=-17 CC=clang-17 LD=ld.lld-17 modules"));
  EXPECT_THAT(make_command(build).needs, ElementsAre("make", "clang-17", "ld.lld-17"));
  build.compiler = "clang";
  EXPECT_THAT(to_text(make_command(build)), HasSubstr(" LLVM=1 CC=clang LD=ld.lld modules"));
}

TEST(ChooseCompiler, TakesTheKernelsOwnIfTheUsualOneIsAnother) {
  EXPECT_EQ(choose_compiler({.default_gcc = 12, .gcc = {12}}, {.gcc_major = 12}), "");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {12, 13}}, {.gcc_major = 12}), "gcc-12");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {13}}, {.gcc_major = 12}), "");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {13}}, {}), "");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {13}}, {.clang_major = 17}), "clang");
  EXPECT_EQ(choose_compiler({.clang = {16, 17}, .lld = {16, 17}, .has_lld = true},
                            {.clang_major = 17, .uses_lld = true}),
            "clang-17");
  EXPECT_EQ(choose_compiler({.clang = {17}, .has_clang = true, .has_lld = true},
                            {.clang_major = 17, .uses_lld = true}),
            "clang");
}

TEST(PatchDirectory, FollowsThePathsInThePatch) {
  EXPECT_EQ(*patch_directory("--- a/kernel-open/nvidia/nv.c\n+++ b/kernel-open/nvidia/nv.c\n@@\n",
                             "/u", "kernel-open"),
            "/u");
  EXPECT_EQ(*patch_directory("+++ b/nvidia/nv.c\t2026-01-01\n", "/u", "kernel-open"),
            "/u/kernel-open");
  EXPECT_EQ(*patch_directory("+++ x\n", "/u", "kernel"), "/u/kernel");
  EXPECT_EQ(patch_directory("not a patch", "/u", "kernel").error().code(), Errc::Invalid);
}

TEST(CheckModule, KnowsTheKernelTheVersionAndTheSignature) {
  const InstallRecord target{.version = kNewDriver};
  kernel_module::ModuleTrust trust{.secure_boot = kernel_module::ModuleTrust::SecureBoot::Off,
                                   .lockdown = kernel_module::ModuleTrust::Lockdown::None};
  kernel_module::ModuleFile module{
      .name = "nvidia", .vermagic = "6.1.0 SMP ", .version = kNewDriver};
  EXPECT_TRUE(check_module(module, "6.1.0", target, trust).ok());
  EXPECT_THAT(check_module(module, "6.2.0", target, trust).error().text(),
              HasSubstr("built for the kernel 6.1.0, not for 6.2.0"));
  trust.signatures_enforced = true;
  const auto refused = check_module(module, "6.1.0", target, trust);
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("the kernel will not load nvidia"));
  module.version = "460.56";
  EXPECT_EQ(check_module(module, "6.1.0", target, {}).error().code(), Errc::Invalid);
}

TEST(LicenceStatus, IsReadFromSmi) {
  EXPECT_EQ(parse_licence_status("    vGPU Software Licensed Product\n"
                                 "        Product Name                      : NVIDIA Virtual\n"
                                 "        License Status                    : Licensed (Expiry: "
                                 "2027-8-1 0:0:0 GMT)\n"),
            "Licensed (Expiry: 2027-8-1 0:0:0 GMT)");
  EXPECT_EQ(parse_licence_status(""), "");
}

TEST(RequiredNodes, TakeNumbersModeAndOwnerFromTheDriver) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/version", "NVRM version: x 580.159.04\n");
  tree.file("proc/driver/nvidia/params",
            "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n");
  tree.file("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-uvm\n");
  tree.file("proc/driver/nvidia/gpus/0000:3b:00.0/information", "Device Minor: 2\n");
  const auto nodes = wanted_nodes(tree.host());
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes[0].path, "/dev/nvidia-uvm");
  EXPECT_EQ(nodes[2].path, "/dev/nvidia2");
  EXPECT_EQ(nodes[2].node.mode, 0660U);
  EXPECT_EQ(nodes[2].node.gid, 44U);
  EXPECT_EQ(nodes_to_make(tree.host()).size(), 4U);
  tree.file("dev.table", "/dev/nvidia2 c 195 2 0666 0 0\n/dev/nvidia-uvm c 1 0 0666 0 0\n");
  EXPECT_EQ(nodes_to_make(tree.host()).size(), 3U) << "one is right, one has other numbers";
  tree.file("dev.table", "/dev/nvidia2 c 195 2 01232 0 0\n");
  EXPECT_EQ(nodes_to_make(tree.host()).size(), 4U) << "666 where a decimal number was expected";
  tree.file("proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n");
  EXPECT_THAT(wanted_nodes(tree.host()), IsEmpty());
}

TEST(BootFiles, SuitTheMachine) {
  test::Tree tree;
  tree.directory("run/systemd/system").file("usr/bin/rpm");
  const auto files = boot_files(tree.host(), "/opt/gantry");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_THAT(files[0].content, AllOf(HasSubstr("ExecStart=/opt/gantry driver load"),
                                      Not(HasSubstr("/usr/bin/gantry"))));
  EXPECT_EQ(files[1].link, "/etc/systemd/system/gantry-driver.service");
  EXPECT_EQ(files[2].path, "/etc/kernel/install.d/90-gantry-driver.install");
  EXPECT_THAT(files[2].content, HasSubstr("driver build --kernel \"$2\""));
  tree.file("usr/lib/systemd/system/gantry-driver.service");
  EXPECT_EQ(boot_files(tree.host(), "/opt/gantry").size(), 2U);
  EXPECT_THAT(boot_files(tree.host(), ""), IsEmpty());
}

// tests/e2e/driver_repositories_lane gives this one to zypper.
TEST(BootFiles, HaveAPluginForZypper) {
  test::Tree tree;
  tree.file("usr/bin/zypper");
  const auto files = boot_files(tree.host(), "/usr/bin/gantry");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].path, "/usr/lib/zypp/plugins/commit/gantry-driver");
  EXPECT_EQ(files[1].mode, 0755U);
  std::stringstream golden;
  golden << std::ifstream(test::source_dir() + "/tests/golden/zypp_plugin").rdbuf();
  EXPECT_EQ(files[1].content, golden.str());
}

TEST(BootFiles, HooksNeverStopTheUpdateOfAKernel) {
  for (const auto& script : {dpkg_hook("/usr/bin/gantry"), dpkg_removal_hook("/usr/bin/gantry"),
                             kernel_install_hook("/it's/gantry")}) {
    EXPECT_TRUE(script.starts_with("#!/bin/sh\n"));
    EXPECT_TRUE(script.ends_with("exit 0\n"));
    EXPECT_THAT(script, HasSubstr("[ -x \"$gantry\" ] || exit 0"));
  }
}

}  // namespace
}  // namespace gantry::driver_setup
