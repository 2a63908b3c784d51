// SPDX-License-Identifier: Apache-2.0
// The types of files in NVIDIA's manifests, and where each goes.
#include "base/core/text.hpp"
#include "install/driver_setup/place_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::driver_setup {
namespace {

using driver_package::FileArchitecture;
using driver_package::ManifestFile;
using preflight::Flavour;

constexpr std::array<std::string_view, 4> kSourceTypes{"KERNEL_MODULE_SRC", "UVM_MODULE_SRC",
                                                       "DKMS_CONF", "KERNEL_MODULE"};

constexpr std::string_view kGbmType = "GBM_BACKEND_LIB_SYMLINK";  // of a library in lib64

struct TypeDirectory {
  std::string_view type;
  std::string_view directory;
};
// Types whose names do not say enough. "" leaves a type out: also the libraries that every vendor's
// driver shares (libGL, libEGL, libOpenCL), which would stand in front of the distribution's.
constexpr std::array kTypeDirectories{
    TypeDirectory{"APPLICATION_PROFILE", "share/nvidia"},
    TypeDirectory{"CUDA_ICD", "share/OpenCL/vendors"},
    TypeDirectory{"DOCUMENTATION", ""},
    TypeDirectory{"DOT_DESKTOP", ""},
    TypeDirectory{"EGL_CLIENT_LIB", ""},
    TypeDirectory{"EGL_CLIENT_SYMLINK", ""},
    TypeDirectory{"EGL_EXTERNAL_PLATFORM_JSON", "share/egl/egl_external_platform.d"},
    TypeDirectory{kGbmType, "lib64/gbm"},
    TypeDirectory{"GLVND_EGL_ICD_JSON", "share/glvnd/egl_vendor.d"},
    TypeDirectory{"GLVND_LIB", ""},
    TypeDirectory{"GLVND_SYMLINK", ""},
    TypeDirectory{"GLX_CLIENT_LIB", ""},
    TypeDirectory{"GLX_CLIENT_SYMLINK", ""},
    TypeDirectory{"ICON", ""},
    TypeDirectory{"INSTALLER_BINARY", ""},
    TypeDirectory{"INTERNAL_UTILITY_BINARY", ""},
    TypeDirectory{"INTERNAL_UTILITY_DATA", ""},
    TypeDirectory{"INTERNAL_UTILITY_LIB", ""},
    TypeDirectory{"LIBGL_LA", ""},
    TypeDirectory{"MANPAGE", ""},
    TypeDirectory{"MODULE_SIGNING_KEY", ""},
    TypeDirectory{"NVIDIA_MODPROBE", "bin"},
    TypeDirectory{"NVIDIA_MODPROBE_MANPAGE", ""},
    TypeDirectory{"OPENCL_WRAPPER_LIB", ""},
    TypeDirectory{"OPENCL_WRAPPER_SYMLINK", ""},
    TypeDirectory{"OPENGL_DATA", "share/nvidia"},
    TypeDirectory{"OPENGL_HEADER", ""},
    TypeDirectory{"SANDBOXUTILS_FILELIST_JSON", "share/nvidia/files.d"},
    TypeDirectory{"SYSTEMD_SLEEP_SCRIPT", ""},
    TypeDirectory{"SYSTEMD_UNIT", ""},
    TypeDirectory{"SYSTEMD_UNIT_SYMLINK", ""},
    TypeDirectory{"UTILITY_BINARY", "bin"},
    TypeDirectory{"UTILITY_BIN_SYMLINK", "bin"},
    TypeDirectory{"VDPAU_WRAPPER_LIB", ""},
    TypeDirectory{"VDPAU_WRAPPER_SYMLINK", ""},
    TypeDirectory{"VULKAN_ICD_JSON", "share/vulkan/icd.d"},
    TypeDirectory{"VULKANSC_ICD_JSON", "share/vulkansc"},
    TypeDirectory{"XORG_OUTPUTCLASS_CONFIG", ""},
};

bool is_library_type(std::string_view type) {
  if (type.starts_with("XMODULE") || type.starts_with("GLX_MODULE") || type == "WINE_LIB")
    return false;
  return type.ends_with("_LIB") || type.ends_with("_SYMLINK");
}

// nullopt: left out.
std::optional<std::string> directory_of(const ManifestFile& file) {
  for (const auto& known : kTypeDirectories) {
    if (known.type != file.type) continue;
    if (known.directory.empty()) return std::nullopt;
    // Layers are beside the directory of the drivers.
    if (file.type == "VULKAN_ICD_JSON" && !file.directory.empty()) return "share/vulkan";
    return std::string(known.directory);
  }
  if (is_library_type(file.type)) return "lib64";
  return std::nullopt;
}

// "kernel-open/nvidia/nv.c" -> "source/nvidia/nv.c"
std::optional<PlacedFile> source_file(const ManifestFile& file, Flavour flavour) {
  const auto prefix = fmt::format("{}/", source_directory(flavour));
  if (!file.path.starts_with(prefix)) return std::nullopt;
  return PlacedFile{.path = fmt::format("source/{}", file.path.substr(prefix.size())),
                    .from = file.path,
                    .mode = file.mode & 0777U};
}

bool is_source(const ManifestFile& file) {
  return std::find(kSourceTypes.begin(), kSourceTypes.end(), file.type) != kSourceTypes.end();
}

// Whether a link at this path leads to a place in the version's own directory.
bool stays_inside(std::string_view path, std::string_view target) {
  if (target.empty() || target.front() == '/') return false;
  auto depth = static_cast<std::ptrdiff_t>(split(path, '/').size()) - 1;
  for (const auto part : split(target, '/')) {
    if (part == "..") --depth;
    if (depth < 0) return false;
    if (part != ".." && part != "." && !part.empty()) ++depth;
  }
  return true;
}

// Below the directory of the type. Absolute directories are those of the whole machine.
std::string_view directory_below(std::string_view directory) {
  if (directory.starts_with('/')) return "";
  while (directory.ends_with('/')) directory.remove_suffix(1);
  return directory;
}

}  // namespace

std::string_view source_directory(Flavour flavour) {
  return flavour == Flavour::Open ? "kernel-open" : "kernel";
}

std::optional<PlacedFile> placement_of(const ManifestFile& file, std::string_view version,
                                       Flavour flavour) {
  if (file.architecture == FileArchitecture::Compat32) return std::nullopt;
  if (is_source(file)) return source_file(file, flavour);
  const auto name = base_name(file.path);
  if (file.type == "FIRMWARE") {
    return PlacedFile{.path = fmt::format("firmware/nvidia/{}/{}", version, name),
                      .from = file.path,
                      .mode = 0644};
  }
  const auto directory = directory_of(file);
  if (!directory) return std::nullopt;
  const bool gbm = file.type == kGbmType;
  const auto below = gbm ? "" : directory_below(file.directory);
  PlacedFile placed{.path = below.empty() ? fmt::format("{}/{}", *directory, name)
                                          : fmt::format("{}/{}/{}", *directory, below, name)};
  if (file.is_link()) {
    placed.link = gbm ? fmt::format("../{}", base_name(file.link_target)) : file.link_target;
    if (!stays_inside(placed.path, placed.link) || placed.link == "nvidia-installer")
      return std::nullopt;
    return placed;
  }
  placed.from = file.path;
  // No set-user-id bit: nvidia-modprobe is for users, and Gantry makes the nodes.
  placed.mode = file.mode & 0755U;
  return placed;
}

std::vector<PlacedFile> plan_files(const driver_package::Manifest& manifest, Flavour flavour) {
  std::vector<PlacedFile> files;
  std::set<std::string, std::less<>> paths;
  for (const auto& file : manifest.files) {
    auto placed = placement_of(file, manifest.version, flavour);
    if (placed && paths.insert(placed->path).second) files.push_back(*std::move(placed));
  }
  return files;
}

Status check_has_source(const std::vector<PlacedFile>& files, Flavour flavour) {
  const bool found = std::any_of(files.begin(), files.end(), [](const PlacedFile& file) {
    return file.path.starts_with("source/");
  });
  if (found) return {};
  return Error(Errc::Unsupported,
               fmt::format("the archive has no source of the {} modules (the "
                           "directory {})",
                           preflight::to_string(flavour), source_directory(flavour)))
      .advise(flavour == Flavour::Open ? "use --flavour proprietary" : "use --flavour open");
}

}  // namespace gantry::driver_setup
