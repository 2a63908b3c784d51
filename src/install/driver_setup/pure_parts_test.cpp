// SPDX-License-Identifier: Apache-2.0
// The parts that read and write nothing.
#include "base/core/text.hpp"
#include "install/driver_setup/boot_files.hpp"
#include "install/driver_setup/build_modules.hpp"
#include "install/driver_setup/device_nodes.hpp"
#include "install/driver_setup/install_journal.hpp"
#include "install/driver_setup/install_plan.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/module_options.hpp"
#include "install/driver_setup/place_files.hpp"
#include "install/driver_setup/verify.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using driver_package::FileArchitecture;
using driver_package::ManifestFile;
using preflight::Flavour;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kVersion = "580.159.04";

TEST(DriverLayout, NamesAVersionByItsDigestAndFlavour) {
  const auto name = version_name(kVersion, "0123456789abcdef", Flavour::Open);
  EXPECT_EQ(name, "580.159.04-0123456789ab-open");
  EXPECT_TRUE(is_version_name(name));
  EXPECT_TRUE(is_version_name("430.26-0123456789ab"));
  for (const auto* other : {"", "-", "580", "580.159.04", "..-0123456789ab", "580-0123456789AB",
                            "580-0123456789ab/..", "580/..-0123456789ab", ".-0123456789ab"})
    EXPECT_FALSE(is_version_name(other)) << other;
}

TEST(DriverLayout, RefusesDirectoriesOfOthers) {
  for (const auto* good : {"/usr/local/nvidia", "/home/kubernetes/bin/nvidia", "/opt/nvidia"})
    EXPECT_TRUE(check_directory(good).ok()) << good;
  for (const auto* bad : {"", "nvidia", "/", "/usr", "/usr/", "/usr/local/../bin", "/tmp/nvidia",
                          "/run/nvidia", "/usr/local/nvidia/", "/a b", "/etc", "/usr/lib"})
    EXPECT_EQ(check_directory(bad).error().code(), Errc::Invalid) << bad;
}

struct PlacementCase {
  ManifestFile file;
  const char* path;  // nullptr: left out
  const char* link = "";
};

TEST(Placement, PutsEachTypeWhereItBelongs) {
  const PlacementCase cases[] = {
      {{.path = "libcuda.so.580.159.04", .mode = 0755, .type = "CUDA_LIB"},
       "lib64/libcuda.so.580.159.04"},
      {{.path = "32/libcuda.so.580.159.04",
        .type = "CUDA_LIB",
        .architecture = FileArchitecture::Compat32},
       nullptr},
      {{.path = "libcuda.so.1", .type = "CUDA_SYMLINK", .link_target = "libcuda.so.580.159.04"},
       "lib64/libcuda.so.1",
       "libcuda.so.580.159.04"},
      {{.path = "libvdpau_nvidia.so.580", .type = "VDPAU_LIB", .directory = "vdpau/"},
       "lib64/vdpau/libvdpau_nvidia.so.580"},
      {{.path = "nvidia-drm_gbm.so",
        .type = "GBM_BACKEND_LIB_SYMLINK",
        .directory = "gbm",
        .link_target = "../libnvidia-allocator.so.1"},
       "lib64/gbm/nvidia-drm_gbm.so",
       "../libnvidia-allocator.so.1"},
      {{.path = "nvidia-smi", .mode = 0755, .type = "UTILITY_BINARY"}, "bin/nvidia-smi"},
      {{.path = "nvidia-modprobe", .mode = 04755, .type = "NVIDIA_MODPROBE"},
       "bin/nvidia-modprobe"},
      {{.path = "firmware/gsp_ga10x.bin", .type = "FIRMWARE"},
       "firmware/nvidia/580.159.04/gsp_ga10x.bin"},
      {{.path = "kernel-open/nvidia/nv.c", .type = "KERNEL_MODULE_SRC"}, "source/nvidia/nv.c"},
      {{.path = "kernel/nvidia/nv.c", .type = "KERNEL_MODULE_SRC"}, nullptr},
      {{.path = "10_nvidia.json", .type = "GLVND_EGL_ICD_JSON"},
       "share/glvnd/egl_vendor.d/10_nvidia.json"},
      {{.path = "nvidia_layers.json", .type = "VULKAN_ICD_JSON", .directory = "implicit_layer.d"},
       "share/vulkan/implicit_layer.d/nvidia_layers.json"},
      {{.path = "nvidia-installer", .type = "INSTALLER_BINARY"}, nullptr},
      {{.path = "nvidia-uninstall",
        .type = "UTILITY_BIN_SYMLINK",
        .link_target = "nvidia-installer"},
       nullptr},
      {{.path = "libglx.so.460.56", .type = "GLX_MODULE_SHARED_LIB", .directory = "extensions"},
       nullptr},
      {{.path = "libGL.so.1.7.0", .type = "GLX_CLIENT_LIB"}, nullptr},
      {{.path = "libOpenGL.so.0", .type = "GLVND_LIB"}, nullptr},
      {{.path = "libOpenCL.so.1",
        .type = "OPENCL_WRAPPER_SYMLINK",
        .link_target = "libOpenCL.so.1.0"},
       nullptr},
      {{.path = "libnvidia-opencl.so.460.56", .type = "OPENCL_LIB", .directory = "/"},
       "lib64/libnvidia-opencl.so.460.56"},
      {{.path = "tls/libnvidia-tls.so.460.56", .type = "TLS_LIB", .directory = "tls/"},
       "lib64/tls/libnvidia-tls.so.460.56"},
      {{.path = "nvidia_drv.so", .type = "XMODULE_SHARED_LIB"}, nullptr},
      {{.path = "README.txt", .type = "DOCUMENTATION"}, nullptr},
      {{.path = "something", .type = "A_TYPE_OF_TOMORROW"}, nullptr},
      {{.path = "evil.so", .type = "CUDA_SYMLINK", .link_target = "/etc/passwd"}, nullptr},
      {{.path = "evil.so", .type = "CUDA_SYMLINK", .link_target = "../../../etc"}, nullptr},
  };
  for (const auto& [file, path, link] : cases) {
    const auto placed = placement_of(file, kVersion, Flavour::Open);
    ASSERT_EQ(placed.has_value(), path != nullptr) << file.path << " " << file.type;
    if (!placed) continue;
    EXPECT_EQ(placed->path, path);
    EXPECT_EQ(placed->link, link);
  }
}

TEST(Placement, NeverKeepsASetUserIdBit) {
  const auto placed =
      placement_of({.path = "nvidia-modprobe", .mode = 04755, .type = "NVIDIA_MODPROBE"}, kVersion,
                   Flavour::Open);
  EXPECT_EQ(placed->mode, 0755U);
}

TEST(Placement, SaysWhichFlavourTheArchiveHas) {
  const auto missing = check_has_source({{.path = "lib64/libcuda.so.1"}}, Flavour::Open);
  EXPECT_EQ(missing.error().code(), Errc::Unsupported);
  EXPECT_THAT(missing.error().text(), AllOf(HasSubstr("kernel-open"), HasSubstr("proprietary")));
}

TEST(FileList, ComesBackAsItWasWritten) {
  const std::vector<PlacedFile> files{{.path = "lib64/libcuda.so.580", .mode = 0644, .bytes = 17},
                                      {.path = "lib64/libcuda.so.1", .link = "libcuda.so.580"}};
  EXPECT_EQ(*parse_file_list(to_json(files)), files);
  for (const auto* bad : {"", "{}", R"({"format":1,"files":[{"path":"../x"}]})",
                          R"({"format":1,"files":[{"path":"/x"}]})", R"({"format":2,"files":[]})",
                          R"({"format":1,"files":[{"path":"a//b"}]})"})
    EXPECT_FALSE(parse_file_list(bad).ok()) << bad;
}

TEST(FileList, FindsWhatIsMissingOrCut) {
  test::Tree tree;
  tree.file("d/a", "12345").link("d/b", "a");
  tree.file("d/files.json", to_json(std::vector<PlacedFile>{{.path = "a", .bytes = 5},
                                                            {.path = "b", .link = "a"}}));
  const auto host = tree.host();
  EXPECT_EQ(*find_damage(host, "/d", "/d/files.json"), "");
  tree.file("d/a", "123");
  EXPECT_EQ(*find_damage(host, "/d", "/d/files.json"), "/d/a");
  tree.file("d/a", "12345").link("d/b", "c");
  EXPECT_EQ(*find_damage(host, "/d", "/d/files.json"), "/d/b");
  EXPECT_EQ(find_damage(host, "/e", "/e/files.json").error().code(), Errc::NotFound);
}

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
  const ModuleBuild build{.kernel = "6.1.0-21-amd64",
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
}

TEST(ChooseCompiler, TakesTheKernelsOwnIfTheUsualOneIsAnother) {
  EXPECT_EQ(choose_compiler({.default_gcc = 12, .gcc = {12}}, {.gcc_major = 12}), "");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {12, 13}}, {.gcc_major = 12}), "gcc-12");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {13}}, {.gcc_major = 12}), "");
  EXPECT_EQ(choose_compiler({.default_gcc = 13, .gcc = {13}}, {}), "");
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
  const InstallRecord target{.version = kVersion};
  kernel_module::ModuleTrust trust{.secure_boot = kernel_module::ModuleTrust::SecureBoot::Off,
                                   .lockdown = kernel_module::ModuleTrust::Lockdown::None};
  kernel_module::ModuleFile module{.name = "nvidia", .vermagic = "6.1.0 SMP ", .version = kVersion};
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

InstallRecord full_record() {
  return {.source = preflight::Source::Run,
          .version = kVersion,
          .flavour = Flavour::Open,
          .digest = std::string(64, 'a'),
          .patch_digest = std::string(64, 'b'),
          .url = "https://example.org/x.run",
          .archive = {.path = "/root/x.run", .bytes = 7, .modified_ns = -3},
          .directory = "/opt/nvidia",
          .name = "580.159.04-aaaaaaaaaaaa-open",
          .previous = "460.56-bbbbbbbbbbbb",
          .created = {"/opt/nvidia", "/opt/nvidia/bin"},
          .added_to_loader_config = true,
          .set_firmware_path = true,
          .firmware_path_before = "/lib/fw",
          .made_cdi = true,
          .removal = {{.argv = {"apt-get", "purge"}}, {.argv = {}, .file = "/etc/x"}}};
}

TEST(DriverRecord, ComesBackAsItWasWritten) {
  const auto record = full_record();
  EXPECT_EQ(*parse_record(to_json(record)), record);
  EXPECT_EQ(describe(record), "580.159.04 (open)");
}

TEST(DriverRecord, RefusesWhatItDidNotWrite) {
  const auto good = to_json(full_record());
  const auto with = [&](std::string_view from, std::string_view to) {
    auto text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const auto& bad :
       {std::string(), std::string("{}"), std::string("[1]"),
        with("\"format\": 1", "\"format\": 2"),
        with("580.159.04-aaaaaaaaaaaa-open", "../../../etc"), with("/opt/nvidia\"", "/etc\""),
        with("\"/opt/nvidia/bin\"", "\"/opt/../etc\""), with("\"/opt/nvidia/bin\"", "\"etc\""),
        with("\"source\": \"run\"", "\"source\": \"floppy\""), with("\"open\"", "\"ajar\""),
        with("\"version\": \"580.159.04\"", "\"version\": \"../x\""),
        with("\"/etc/x\"", "\"etc/x\"")}) {
    const auto parsed = parse_record(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code(), Errc::Corrupt);
  }
}

TEST(DriverJournal, ComesBackAsItWasWritten) {
  InstallJournal journal{
      .command = "install",
      .target = full_record(),
      .before = full_record(),
      .steps = {{.kind = StepKind::Unpack}, {.kind = StepKind::BuildModules, .subject = "6.1.0"}},
      .kernel = "6.1.0",
      .step = 1,
      .backwards = true,
      .placed_version = true,
      .placed_modules = true,
      .unloaded = true,
      .services = {"nvidia-dcgm.service"},
      .licence_files = {"/etc/nvidia/gridd.conf"}};
  EXPECT_EQ(*parse_install_journal(to_json(journal)), journal);
  journal.before.reset();
  EXPECT_EQ(*parse_install_journal(to_json(journal)), journal);
}

TEST(DriverJournal, ADamagedOneIsAnErrorWithARemedy) {
  test::Tree tree;
  tree.file(kJournalPath, "{\"format\": 1");
  const auto read = read_install_journal(tree.host());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::Corrupt);
  EXPECT_THAT(read.error().text(), HasSubstr("sudo mv "));
  for (const auto* bad : {R"({"format":1,"command":"dance"})", R"({"format":2})", "{}", "null"})
    EXPECT_FALSE(parse_install_journal(bad).ok()) << bad;
}

TEST(StepNames, AreUniqueAndComeBack) {
  for (int kind = 0; kind <= static_cast<int>(StepKind::CleanUp); ++kind) {
    const auto step = static_cast<StepKind>(kind);
    ASSERT_FALSE(to_string(step).empty()) << kind;
    EXPECT_EQ(parse_step_kind(to_string(step)), step);
    EXPECT_THAT(describe({.kind = step, .subject = "6.1.0"}, full_record()), Not(IsEmpty()));
  }
  EXPECT_FALSE(parse_step_kind("").has_value());
}

TEST(LicenceStatus, IsReadFromSmi) {
  EXPECT_EQ(parse_licence_status("    vGPU Software Licensed Product\n"
                                 "        Product Name                      : NVIDIA Virtual\n"
                                 "        License Status                    : Licensed (Expiry: "
                                 "2027-8-1 0:0:0 GMT)\n"),
            "Licensed (Expiry: 2027-8-1 0:0:0 GMT)");
  EXPECT_EQ(parse_licence_status(""), "");
}

TEST(WantedNodes, TakeNumbersModeAndOwnerFromTheDriver) {
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

TEST(BootFiles, HooksNeverStopTheUpdateOfAKernel) {
  for (const auto& script : {dpkg_hook("/usr/bin/gantry"), dpkg_removal_hook("/usr/bin/gantry"),
                             kernel_install_hook("/it's/gantry")}) {
    EXPECT_TRUE(script.starts_with("#!/bin/sh\n"));
    EXPECT_TRUE(script.ends_with("exit 0\n"));
    EXPECT_THAT(script, HasSubstr("[ -x \"$gantry\" ] || exit 0"));
  }
}

TEST(SameDriver, NeedsTheSameArchivePatchFlavourAndDirectory) {
  auto record = full_record();
  preflight::DriverRequest request{.directory = "/opt/nvidia"};
  PackageInfo package{.version = kVersion, .digest = record.digest};
  const auto same = [&] { return is_same_driver(record, request, package, record.patch_digest); };
  EXPECT_TRUE(same());
  EXPECT_FALSE(is_same_driver(record, request, package, ""));
  request.flavour = Flavour::Proprietary;
  EXPECT_FALSE(same());
  request.flavour = Flavour::Open;
  package.digest = std::string(64, 'c');
  EXPECT_FALSE(same());
  package.digest.clear();
  package.url = record.url;
  EXPECT_TRUE(same());
  request.directory = "/usr/local/nvidia";
  EXPECT_FALSE(same());
  record.source = request.source = preflight::Source::Packages;
  for (const auto* wish : {"", "580", "580.159", "580.159.04"}) {
    package.version = wish;
    EXPECT_TRUE(same()) << wish;
  }
  package.version = "58";
  EXPECT_FALSE(same());
}

}  // namespace
}  // namespace gantry::driver_setup
