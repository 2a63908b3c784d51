// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/place_files.hpp"

#include "install/driver_package/manifest.hpp"
#include "install/driver_setup/machine_for_test.hpp"
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
        .link_target = "libnvidia-allocator.so.1"},
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
      {{.path = "nvidia_icd_vksc.json", .type = "VULKANSC_ICD_JSON", .directory = "icd.d"},
       "share/vulkansc/icd.d/nvidia_icd_vksc.json"},
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
    const auto placed = placement_of(file, kNewDriver, Flavour::Open);
    ASSERT_EQ(placed.has_value(), path != nullptr) << file.path << " " << file.type;
    if (!placed) continue;
    EXPECT_EQ(placed->path, path);
    EXPECT_EQ(placed->link, link);
  }
}

TEST(Placement, NeverKeepsASetUserIdBit) {
  const auto placed =
      placement_of({.path = "nvidia-modprobe", .mode = 04755, .type = "NVIDIA_MODPROBE"},
                   kNewDriver, Flavour::Open);
  EXPECT_EQ(placed->mode, 0755U);
}

TEST(Placement, SaysWhichFlavourTheArchiveHas) {
  const auto missing = check_has_source({{.path = "lib64/libcuda.so.1"}}, Flavour::Open);
  EXPECT_EQ(missing.error().code(), Errc::Unsupported);
  EXPECT_THAT(missing.error().text(), AllOf(HasSubstr("kernel-open"), HasSubstr("proprietary")));
}

// Lines as the archives 390.48 and 595.84 have them.
TEST(Manifest, IsReadWithTheWordsThatRealArchivesHave) {
  constexpr std::string_view text(
      "NVIDIA Accelerated Graphics Driver for Linux-x86_64\n390.48\n \n"
      "nvidia nvidia-uvm nvidia-modeset nvidia-drm \n \n \n./kernel/\n./kernel/precompiled/\n"
      "kernel/nvidia/nv.c 0644 KERNEL_MODULE_SRC INHERIT_PATH_DEPTH:1 MODULE:resman\n"
      "libnvidia-tls.so.390.48 0755 TLS_LIB NATIVE CLASSIC / MODULE:opengl\n"
      "libGL.so.1 0000 GLX_CLIENT_SYMLINK NATIVE libGL.so.390.48 NON_GLVND MODULE:opengl\n"
      "libcuda.so.390.48 0755 CUDA_LIB NATIVE / MODULE:gpgpu\n"
      "libcuda.so.1 0000 CUDA_SYMLINK NATIVE / libcuda.so.390.48 MODULE:gpgpu\n"
      "./32/libcuda.so.390.48 0755 CUDA_LIB COMPAT32 / MODULE:gpgpu\n"
      "libvdpau_nvidia.so 0000 VDPAU_SYMLINK NATIVE / vdpau/libvdpau_nvidia.so.390.48 "
      "MODULE:vdpau\n"
      "nvidia-modprobe 04755 NVIDIA_MODPROBE /usr/bin/ MODULE:installer\n"
      "nvidia-uninstall 0000 UTILITY_BIN_SYMLINK nvidia-installer MODULE:installer\n");
  const auto manifest = driver_package::parse_manifest(text);
  ASSERT_TRUE(manifest.ok()) << manifest.error().text();
  std::vector<std::string> placed;
  for (const auto& file : plan_files(*manifest, Flavour::Proprietary))
    placed.push_back(file.link.empty() ? file.path : fmt::format("{} -> {}", file.path, file.link));
  EXPECT_THAT(placed,
              ElementsAre("source/nvidia/nv.c", "lib64/libnvidia-tls.so.390.48",
                          "lib64/libcuda.so.390.48", "lib64/libcuda.so.1 -> libcuda.so.390.48",
                          "lib64/libvdpau_nvidia.so -> vdpau/libvdpau_nvidia.so.390.48",
                          "bin/nvidia-modprobe"));
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

}  // namespace
}  // namespace gantry::driver_setup
