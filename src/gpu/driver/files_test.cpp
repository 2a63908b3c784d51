// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/files.hpp"

#include "base/core/text.hpp"
#include "gpu/driver/capability_table.hpp"
#include "gpu/driver/driver_tree_for_test.hpp"
#include "gpu/driver/file_names.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace gantry::driver {
namespace {

using enum model::Capability;
using model::DriverFileKind;
using test::Tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DriverFiles found_in(const Tree& tree) {
  const auto host = tree.host();
  return find_files(host, find_root(host));
}

const model::DriverFile* at(const DriverFiles& found, std::string_view path) {
  const auto file = std::find_if(found.files.begin(), found.files.end(),
                                 [&](const model::DriverFile& f) { return f.path == path; });
  return file == found.files.end() ? nullptr : &*file;
}

TEST(FindFiles, ALibraryHasSonameLinksCapabilityAndReason) {
  Tree tree;
  put_module(tree, "550.54.14");
  put_driver(tree, "usr/lib64", "550.54.14");
  const auto found = found_in(tree);
  const auto* cuda = found.library("libcuda.so.1");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(cuda->path, "/usr/lib64/libcuda.so.550.54.14");
  EXPECT_EQ(cuda->soname, "libcuda.so.1");
  EXPECT_THAT(cuda->links, ElementsAre("libcuda.so", "libcuda.so.1"));
  EXPECT_THAT(cuda->capabilities, ElementsAre(Compute));
  EXPECT_GT(cuda->size, 100U);
  EXPECT_EQ(cuda->why, "in /usr/lib64 (standard directory)");
  EXPECT_EQ(found.library("libnvidia-ml.so.1")->why, "beside libcuda.so.550.54.14 in /usr/lib64");
  EXPECT_THAT(found.library("libnvidia-ml.so.1")->capabilities, ElementsAre(Utility));
  EXPECT_THAT(found.library("libnvcuvid.so.1")->capabilities, ElementsAre(Video));
}

TEST(FindFiles, SaysWhenLdSoCacheNamesIt) {
  Tree tree;
  put_driver(tree, "srv/odd", "550.54.14");
  put_cache(tree, {{.name = "libcuda.so.1", .path = "/srv/odd/libcuda.so.1"}});
  const auto found = found_in(tree);
  EXPECT_EQ(found.library("libcuda.so.1")->why, "in ld.so.cache as libcuda.so.1");
  EXPECT_EQ(found.library("libnvidia-ml.so.1")->why, "beside libcuda.so.550.54.14 in /srv/odd");
}

TEST(FindFiles, OtherVersionsAreLeftOut) {
  Tree tree;
  put_module(tree, "550.54.14");
  put_driver(tree, "usr/lib64", "550.54.14");
  tree.file("usr/lib64/libnvidia-glcore.so.470.57.02", test::elf_image({}));
  tree.file("usr/lib64/libGL.so.1.7.0", test::elf_image({.soname = "libGL.so.1"}));  // Mesa's
  for (const auto& file : found_in(tree).files) EXPECT_THAT(file.path, HasSubstr("550.54.14"));
}

TEST(FindFiles, LibrariesOfANewerDriverThanTheTableAreOffered) {
  Tree tree;
  put_driver(tree, "usr/lib64", "650.10");
  put_library(tree, "usr/lib64", "libnvidia-quantum", "650.10");
  const auto found = found_in(tree);
  const auto* file = found.library("libnvidia-quantum.so.1");
  ASSERT_NE(file, nullptr);
  EXPECT_THAT(file->capabilities, ElementsAre(Compute, Graphics));
  EXPECT_THAT(file->why, HasSubstr("not in our table"));
}

TEST(FindFiles, LibrariesNumberedByThemselvesAreFoundOnce) {
  Tree tree;
  put_driver(tree, "usr/lib64", "550.54.14");
  put_library(tree, "usr/lib64", "libnvidia-egl-gbm", "1.1.2");
  put_library(tree, "usr/lib64", "libnvidia-allocator", "550.54.14");
  tree.link("usr/lib64/gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1");
  const auto found = found_in(tree);
  const auto* gbm = at(found, "/usr/lib64/libnvidia-egl-gbm.so.1.1.2");
  ASSERT_NE(gbm, nullptr);
  EXPECT_THAT(gbm->links, ElementsAre("libnvidia-egl-gbm.so", "libnvidia-egl-gbm.so.1"));
  EXPECT_EQ(std::count_if(found.files.begin(), found.files.end(),
                          [](const auto& f) { return contains(f.path, "egl-gbm"); }),
            1);
  EXPECT_THAT(found.library("libnvidia-allocator.so.1")->links, Contains("gbm/nvidia-drm_gbm.so"));
}

TEST(FindFiles, The32BitTwinsNeedCompat32) {
  Tree tree;
  put_driver(tree, "usr/lib/x86_64-linux-gnu", "550.54.14");
  put_driver(tree, "usr/lib/i386-linux-gnu", "550.54.14", Bits::B32);
  const auto found = found_in(tree);
  const auto* twin = at(found, "/usr/lib/i386-linux-gnu/libcuda.so.550.54.14");
  ASSERT_NE(twin, nullptr);
  EXPECT_TRUE(twin->is_32bit);
  EXPECT_THAT(twin->capabilities, ElementsAre(Compute, Compat32));
  EXPECT_EQ(found.library("libcuda.so.1")->path, "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14");
  EXPECT_FALSE(is_needed(*twin, std::vector{Compute}));
  EXPECT_FALSE(is_needed(*twin, std::vector{Utility, Compat32}));
  EXPECT_TRUE(is_needed(*twin, std::vector{Compute, Compat32}));
}

TEST(FindFiles, OldUbuntuHasProgramsBesideItsLibraries) {
  Tree tree;
  put_module(tree, "384.98");
  put_library(tree, "usr/lib/x86_64-linux-gnu", "libcuda", "384.98");
  put_library(tree, "usr/lib/nvidia-384", "libnvidia-ml", "384.98");
  put_library(tree, "usr/lib/nvidia-384/vdpau", "libvdpau_nvidia", "384.98");
  put_library(tree, "usr/lib/nvidia-384", "libnvidia-tls", "384.98");
  put_library(tree, "usr/lib/nvidia-384/tls", "libnvidia-tls", "384.98");
  tree.file("usr/lib/nvidia-384/bin/nvidia-smi", "#!");
  tree.link("usr/bin/nvidia-smi", "/etc/alternatives/smi")
      .link("etc/alternatives/smi", "/usr/lib/nvidia-384/bin/nvidia-smi");
  const auto found = found_in(tree);
  ASSERT_NE(at(found, "/usr/lib/nvidia-384/bin/nvidia-smi"), nullptr);
  EXPECT_EQ(at(found, "/usr/lib/nvidia-384/bin/nvidia-smi")->kind, DriverFileKind::Binary);
  EXPECT_NE(at(found, "/usr/lib/nvidia-384/vdpau/libvdpau_nvidia.so.384.98"), nullptr);
  EXPECT_NE(at(found, "/usr/lib/nvidia-384/tls/libnvidia-tls.so.384.98"), nullptr);
  EXPECT_EQ(at(found, "/usr/lib/nvidia-384/libnvidia-tls.so.384.98"), nullptr);
}

TEST(FindFiles, AnAlternativeKeepsTheNameThatProgramsKnow) {
  Tree tree;
  put_driver(tree, "usr/lib/x86_64-linux-gnu/nvidia/current", "535.1.2");
  tree.file("usr/lib/nvidia/current/nvidia-smi", "#!")
      .link("usr/bin/nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
  const auto found = found_in(tree);
  const auto* smi = at(found, "/usr/lib/nvidia/current/nvidia-smi");
  ASSERT_NE(smi, nullptr);
  EXPECT_THAT(smi->links, ElementsAre("/usr/bin/nvidia-smi"));
}

TEST(FindFiles, ASelfContainedRootBringsItsProgramsConfigurationAndFirmware) {
  Tree tree;
  put_module(tree, "580.159.04");
  put_driver(tree, "usr/local/nvidia/lib64", "580.159.04");
  tree.file("usr/local/nvidia/bin/nvidia-smi", "#!").file("usr/bin/nvidia-smi", "another");
  tree.file("usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json", "{}");
  tree.file("usr/local/nvidia/firmware/nvidia/580.159.04/gsp_ga10x.bin", "firmware");
  tree.file("sys/module/firmware_class/parameters/path", "/usr/local/nvidia/firmware\n");
  tree.file("run/nvidia-persistenced/socket");
  const auto found = found_in(tree);
  EXPECT_NE(at(found, "/usr/local/nvidia/bin/nvidia-smi"), nullptr);
  EXPECT_EQ(at(found, "/usr/bin/nvidia-smi"), nullptr);
  EXPECT_EQ(at(found, "/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json")->kind,
            DriverFileKind::Config);
  const auto* firmware = at(found, "/usr/local/nvidia/firmware/nvidia/580.159.04/gsp_ga10x.bin");
  ASSERT_NE(firmware, nullptr);
  EXPECT_EQ(firmware->size, 8U);
  EXPECT_EQ(firmware->why, "the kernel looks for firmware in /usr/local/nvidia/firmware");
  EXPECT_EQ(at(found, "/run/nvidia-persistenced/socket")->kind, DriverFileKind::IpcSocket);
}

TEST(FindFiles, GkeKeepsVulkanInItsDirectory) {
  Tree tree;
  put_driver(tree, "home/kubernetes/bin/nvidia/lib64", "535.104.05");
  tree.file("home/kubernetes/bin/nvidia/vulkan/icd.d/nvidia_icd.json", "{}");
  tree.file("home/kubernetes/bin/nvidia/bin/nvidia-smi", "#!");
  const auto found = found_in(tree);
  EXPECT_NE(at(found, "/home/kubernetes/bin/nvidia/vulkan/icd.d/nvidia_icd.json"), nullptr);
  EXPECT_NE(at(found, "/home/kubernetes/bin/nvidia/bin/nvidia-smi"), nullptr);
}

TEST(FindFiles, NixosFilesAreTheOnesInTheStore) {
  Tree tree;
  put_driver(tree, "nix/store/aaa-nvidia-x11-565.77/lib", "565.77");
  for (const auto* name : {"libcuda.so.565.77", "libcuda.so.1", "libcuda.so"}) {
    tree.link(fmt::format("nix/store/bbb-drivers/lib/{}", name),
              fmt::format("/nix/store/aaa-nvidia-x11-565.77/lib/{}", name));
  }
  tree.link("run/opengl-driver", "/nix/store/bbb-drivers");
  tree.file("nix/store/ccc-bin/bin/nvidia-smi", "#!");
  tree.link("run/current-system/sw/bin/nvidia-smi", "/nix/store/ccc-bin/bin/nvidia-smi");
  tree.file("nix/store/bbb-drivers/share/vulkan/icd.d/nvidia_icd.x86_64.json", "{}");
  const auto found = found_in(tree);
  const auto* cuda = found.library("libcuda.so.1");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(cuda->path, "/nix/store/aaa-nvidia-x11-565.77/lib/libcuda.so.565.77");
  EXPECT_THAT(cuda->links, ElementsAre("libcuda.so", "libcuda.so.1"));
  EXPECT_NE(at(found, "/nix/store/ccc-bin/bin/nvidia-smi"), nullptr);
  EXPECT_NE(at(found, "/nix/store/bbb-drivers/share/vulkan/icd.d/nvidia_icd.x86_64.json"), nullptr);
}

TEST(FindFiles, ADriverContainersFilesCarryItsRoot) {
  Tree tree;
  put_module(tree, "570.86.15");
  put_driver(tree, "run/nvidia/driver/usr/lib/x86_64-linux-gnu", "570.86.15");
  tree.file("run/nvidia/driver/usr/bin/nvidia-smi", "#!").file("usr/bin/nvidia-smi", "the host's");
  tree.file("run/nvidia/driver/lib/firmware/nvidia/570.86.15/gsp_tu10x.bin", "x");
  tree.file("run/nvidia/driver/run/nvidia-persistenced/socket");
  const auto found = found_in(tree);
  EXPECT_EQ(found.library("libcuda.so.1")->path,
            "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15");
  EXPECT_NE(at(found, "/run/nvidia/driver/usr/bin/nvidia-smi"), nullptr);
  EXPECT_EQ(at(found, "/usr/bin/nvidia-smi"), nullptr);
  EXPECT_NE(at(found, "/run/nvidia/driver/lib/firmware/nvidia/570.86.15/gsp_tu10x.bin"), nullptr);
  EXPECT_NE(at(found, "/run/nvidia/driver/run/nvidia-persistenced/socket"), nullptr);
}

TEST(FindFiles, XorgModulesAreForDisplays) {
  Tree tree;
  put_driver(tree, "usr/lib/x86_64-linux-gnu", "550.54.14");
  tree.file("usr/lib/xorg/modules/drivers/nvidia_drv.so", "x");
  tree.file("usr/lib/xorg/modules/extensions/libglxserver_nvidia.so.550.54.14", "x");
  const auto found = found_in(tree);
  const auto* module = at(found, "/usr/lib/xorg/modules/drivers/nvidia_drv.so");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->kind, DriverFileKind::XorgModule);
  EXPECT_THAT(module->capabilities, ElementsAre(Display));
  EXPECT_NE(at(found, "/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so.550.54.14"),
            nullptr);
}

TEST(FindFiles, TheMpsPipeIsApartBecauseItIsGivenOnRequestOnly) {
  Tree tree;
  put_driver(tree, "usr/lib64", "550.54.14");
  tree.directory("tmp/nvidia-mps");
  const auto found = found_in(tree);
  EXPECT_EQ(found.mps_pipe_directory, "/tmp/nvidia-mps");
  EXPECT_THAT(found.files,
              Not(Contains(Field(&model::DriverFile::kind, DriverFileKind::IpcSocket))));
}

TEST(FindFiles, ADamagedLibraryIsNotedAndKept) {
  Tree tree;
  put_driver(tree, "usr/lib64", "550.54.14");
  tree.file("usr/lib64/libnvcuvid.so.550.54.14", "garbage");
  const auto found = found_in(tree);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("libnvcuvid.so.550.54.14 is damaged")));
  EXPECT_NE(at(found, "/usr/lib64/libnvcuvid.so.550.54.14"), nullptr);
}

TEST(FindFiles, WithoutADriverThereAreNone) {
  Tree tree;
  EXPECT_THAT(found_in(tree).files, IsEmpty());
}

TEST(Missing, NamesWhatTheTableKnowsAndTheMachineLacks) {
  Tree tree;
  put_driver(tree, "usr/lib64", "550.54.14");
  tree.file("usr/bin/nvidia-smi", "#!");
  const auto host = tree.host();
  const auto root = find_root(host);
  const auto absent = missing_files(find_files(host, root), root);
  EXPECT_THAT(absent, Contains(MissingFile{
                          "libnvidia-cfg.so.550.54.14", DriverFileKind::Library, {Utility}}));
  EXPECT_THAT(absent,
              Contains(MissingFile{"nvidia-persistenced", DriverFileKind::Binary, {Utility}}));
  EXPECT_THAT(absent, Not(Contains(Field(&MissingFile::name, "nvidia-smi"))));
  EXPECT_THAT(absent, Not(Contains(Field(&MissingFile::name, "libcuda.so.550.54.14"))));
}

TEST(IsNeeded, VideoBringsComputeAndDisplayBringsGraphics) {
  const model::DriverFile compute{.path = "/a", .capabilities = {Compute}};
  const model::DriverFile graphics{.path = "/b", .capabilities = {Graphics}};
  EXPECT_TRUE(is_needed(compute, std::vector{Video}));
  EXPECT_FALSE(is_needed(compute, std::vector{Utility}));
  EXPECT_TRUE(is_needed(graphics, std::vector{Display}));
  EXPECT_FALSE(is_needed(graphics, std::vector{Compute}));
}

TEST(DriverVersion, IsDistinguishedFromOtherNumbers) {
  for (const auto* yes : {"384.98", "430.26", "580.159.04", "999.88.77"})
    EXPECT_TRUE(is_driver_version(yes)) << yes;
  for (const auto* no :
       {"", "1", "1.1", "1.7.0", "20220623.0.0", "550", "550.", "550.x", ".550.1", "0123.4"}) {
    EXPECT_FALSE(is_driver_version(no)) << no;
  }
}

}  // namespace
}  // namespace gantry::driver
