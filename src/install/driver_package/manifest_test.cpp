// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/manifest.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kFirst =
    "NVIDIA Accelerated Graphics Driver for Linux-x86_64\n"
    "580.159.04\n"
    "nvidia.ko\n"
    "nvidia nvidia-uvm nvidia-modeset nvidia-drm nvidia-peermem\n"
    "nvidia\n"
    "nvidiafb nouveau\n"
    "NVdriver nvidia.ko\n"
    "kernel\n";

Result<Manifest> with(std::string_view files) {
  return parse_manifest(fmt::format("{}{}", kFirst, files));
}

TEST(ManifestText, ListsWhatAPackageHas) {
  const auto found = with(
      "nvidia-smi 0755 UTILITY_BINARY\n"
      "libcuda.so.580.159.04 0755 CUDA_LIB NATIVE ./\n"
      "libcuda.so.1 0000 CUDA_SYMLINK NATIVE ./ libcuda.so.580.159.04\n"
      "32/libcuda.so.580.159.04 0755 CUDA_LIB COMPAT32 ./\n"
      "libnvidia-ml.so.1 0000 UTILITY_LIB_SYMLINK NATIVE libnvidia-ml.so.580.159.04\n"
      "kernel-open/nvidia/nv.c 0644 KERNEL_MODULE_SRC INHERIT_PATH_DEPTH:1\n"
      "firmware/gsp_ga10x.bin 0644 FIRMWARE INHERIT_PATH_DEPTH:1\n"
      "nvidia-modprobe 4755 NVIDIA_MODPROBE usr/bin\n"
      "nvidia-dbus.conf 0644 EXPLICIT_PATH /usr/share/dbus-1/system.d\n"
      "tls/libnvidia-tls.so.430.26 0755 TLS_LIB NATIVE NEW ./\n");
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->description, "NVIDIA Accelerated Graphics Driver for Linux-x86_64");
  EXPECT_EQ(found->version, "580.159.04");
  EXPECT_THAT(found->modules, ElementsAre("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm",
                                          "nvidia-peermem"));
  const auto& files = found->files;
  ASSERT_EQ(files.size(), 10U);
  EXPECT_EQ(files[0], (ManifestFile{.path = "nvidia-smi", .mode = 0755, .type = "UTILITY_BINARY"}));
  EXPECT_EQ(files[1].architecture, FileArchitecture::Native);
  EXPECT_EQ(files[2].link_target, "libcuda.so.580.159.04");
  EXPECT_EQ(files[2].directory, ".");
  EXPECT_TRUE(files[2].is_link());
  EXPECT_EQ(files[3].architecture, FileArchitecture::Compat32);
  EXPECT_EQ(files[4].link_target, "libnvidia-ml.so.580.159.04");
  EXPECT_EQ(files[4].directory, "");
  EXPECT_EQ(files[5].directory, "nvidia");
  EXPECT_EQ(files[6].directory, "");
  EXPECT_EQ(files[7].mode, 04755U);
  EXPECT_EQ(files[8].directory, "/usr/share/dbus-1/system.d");
  EXPECT_EQ(files[9].directory, ".");
}

// Lines of 570.211.01 and 390.48.
TEST(ManifestText, ReadsTheLinesOfRealPackages) {
  const auto found = with(
      "kernel/nvidia/nv.c 0644 KERNEL_MODULE_SRC INHERIT_PATH_DEPTH:1 MODULE:resman\n"
      "libcuda.so.570.211.01 0755 CUDA_LIB NATIVE / MODULE:gpgpu\n"
      "libcuda.so.1 0000 CUDA_SYMLINK NATIVE / libcuda.so.570.211.01 MODULE:gpgpu\n"
      "./32/libcuda.so.570.211.01 0755 CUDA_LIB COMPAT32 / MODULE:gpgpu\n"
      "libvdpau_nvidia.so 0000 VDPAU_SYMLINK NATIVE / vdpau/libvdpau_nvidia.so.570.211.01 "
      "MODULE:vdpau\n"
      "nvidia-modprobe 04755 NVIDIA_MODPROBE /usr/bin/ MODULE:installer\n"
      "nvoptix.bin 0444 OPENGL_DATA /usr/share/nvidia MODULE:optix\n"
      "libGL.so.1 0000 GLX_CLIENT_SYMLINK NATIVE libGL.so.390.48 NON_GLVND MODULE:opengl\n"
      "libnvidia-tls.so.390.48 0755 TLS_LIB NATIVE CLASSIC / MODULE:opengl\n");
  ASSERT_TRUE(found.ok()) << found.error().text();
  const auto& files = found->files;
  ASSERT_EQ(files.size(), 9U);
  EXPECT_EQ(files[0].directory, "nvidia");
  EXPECT_EQ(files[1].directory, "");
  EXPECT_EQ(files[2].link_target, "libcuda.so.570.211.01");
  EXPECT_EQ(files[3].architecture, FileArchitecture::Compat32);
  EXPECT_EQ(files[4].link_target, "vdpau/libvdpau_nvidia.so.570.211.01");
  EXPECT_EQ(files[5].directory, "/usr/bin");
  EXPECT_EQ(files[6].directory, "/usr/share/nvidia");
  EXPECT_EQ(files[7].link_target, "libGL.so.390.48");
  EXPECT_EQ(files[8].directory, "");
}

// Old packages have a ninth line; a type that is not known yet is kept.
TEST(ManifestText, ToleratesWhatOtherVersionsHave) {
  const auto old = with("precompiled\nnvidia-smi 0755 UTILITY_BINARY\n");
  ASSERT_TRUE(old.ok()) << old.error().text();
  EXPECT_EQ(old->files.size(), 1U);
  const auto later = with("x 0644 SOMETHING_NEW NATIVE some/where\n\nwhat follows is not read\n");
  ASSERT_TRUE(later.ok()) << later.error().text();
  EXPECT_EQ(later->files.size(), 1U);
}

TEST(ManifestText, NamesTheLineThatIsWrong) {
  struct Case {
    const char* files = nullptr;
    const char* text = nullptr;
  };
  constexpr std::string_view kGood = "nvidia-smi 0755 UTILITY_BINARY\n";
  for (const auto& [files, text] : {
           Case{"../etc/passwd 0644 DOCUMENTATION .\n", "line 10: a path that leaves"},
           Case{"/etc/passwd 0644 DOCUMENTATION .\n", "line 10: a path that leaves"},
           Case{"a/../../b 0644 DOCUMENTATION .\n", "line 10: a path that leaves"},
           Case{"a 0644\n", "line 10: not of the form"},
           Case{"a 0999 DOCUMENTATION\n", "line 10: not of the form"},
           Case{"a 77777777777 DOCUMENTATION\n", "line 10: not of the form"},
           Case{"a 0644 documentation\n", "line 10: not of the form"},
           Case{"su 4755 UTILITY_BINARY\n", "line 10: a file that would run"},
           Case{"a 0000 CUDA_SYMLINK\n", "line 10: a link without"},
           Case{"a 0000 CUDA_SYMLINK /etc/passwd\n", "line 10: a link to an absolute"},
           Case{"a 0644 FIRMWARE INHERIT_PATH_DEPTH:1\n", "line 10: a depth"},
           Case{"a/b 0644 FIRMWARE INHERIT_PATH_DEPTH:x\n", "line 10: a depth"},
           Case{"a 0644 DOCUMENTATION b c\n", "line 10: a word"},
           Case{"a 0644 DOCUMENTATION ../b\n", "line 10: a word"},
           Case{"a\x01 0644 DOCUMENTATION b\n", "line 10: a path"},
       }) {
    const auto found = with(fmt::format("{}{}", kGood, files));
    ASSERT_FALSE(found.ok()) << files;
    EXPECT_EQ(found.error().code(), Errc::Corrupt);
    EXPECT_THAT(found.error().text(), HasSubstr(text));
  }
}

TEST(ManifestText, NeedsItsFirstLinesAndFiles) {
  for (const auto* text : {"", "\n", "x\n", "x\n580\nx\nnvidia\n", "x\n../..\ny\nnvidia\n",
                           "\n580.1\nx\nnvidia\n", "x\n580.1\ny\n../nvidia\na 0644 FIRMWARE\n"})
    EXPECT_FALSE(parse_manifest(text).ok()) << text;
  EXPECT_THAT(with("").error().text(), HasSubstr("lists no files"));
  EXPECT_EQ(parse_manifest(std::string(kManifestLimit + 1, 'x')).error().code(), Errc::TooLarge);
  std::string many;
  for (std::size_t i = 0; i <= kManifestFiles; ++i) many += fmt::format("{} 0644 ICON\n", i);
  EXPECT_THAT(with(many).error().text(), HasSubstr("more than 20000 files"));
}

}  // namespace
}  // namespace gantry::driver_package
