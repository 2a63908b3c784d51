// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/capability_table.hpp"

#include <algorithm>
#include <array>

namespace gantry::driver {
namespace {

constexpr auto kCompute = mask_of(model::Capability::Compute);
constexpr auto kUtility = mask_of(model::Capability::Utility);
constexpr auto kVideo = mask_of(model::Capability::Video);
constexpr auto kGraphics = mask_of(model::Capability::Graphics);
constexpr auto kDisplay = mask_of(model::Capability::Display);
constexpr auto kNgx = mask_of(model::Capability::Ngx);
constexpr auto kVersioned = NameRule::DriverVersion;

constexpr std::array kLibraries{
    LibraryRow{"libnvidia-ml", kVersioned, kUtility},
    LibraryRow{"libnvidia-cfg", kVersioned, kUtility},
    LibraryRow{"libnvidia-nscq", kVersioned, kUtility},
    LibraryRow{"libnvidia-sandboxutils", kVersioned, kUtility},

    LibraryRow{"libcuda", kVersioned, kCompute},
    LibraryRow{"libcudadebugger", kVersioned, kCompute},
    LibraryRow{"libnvidia-opencl", kVersioned, kCompute},
    LibraryRow{"libnvidia-gpucomp", kVersioned, kCompute | kGraphics},
    LibraryRow{"libnvidia-ptxjitcompiler", kVersioned, kCompute},
    LibraryRow{"libnvidia-fatbinaryloader", kVersioned, kCompute},
    LibraryRow{"libnvidia-allocator", kVersioned, kCompute | kGraphics},
    LibraryRow{"libnvidia-compiler", kVersioned, kCompute},
    LibraryRow{"libnvidia-compiler-next", kVersioned, kCompute},
    LibraryRow{"libnvidia-pkcs11", kVersioned, kCompute},
    LibraryRow{"libnvidia-pkcs11-openssl3", kVersioned, kCompute},
    LibraryRow{"libnvidia-nvvm", kVersioned, kCompute},
    LibraryRow{"libnvidia-nvvm70", NameRule::OwnVersion, kCompute},
    LibraryRow{"libnvidia-tileiras", kVersioned, kCompute},

    LibraryRow{"libvdpau_nvidia", kVersioned, kVideo},
    LibraryRow{"libnvidia-encode", kVersioned, kVideo},
    LibraryRow{"libnvidia-opticalflow", kVersioned, kVideo},
    LibraryRow{"libnvcuvid", kVersioned, kVideo},

    LibraryRow{"libnvidia-eglcore", kVersioned, kGraphics},
    LibraryRow{"libnvidia-glcore", kVersioned, kGraphics},
    LibraryRow{"libnvidia-tls", kVersioned, kGraphics},
    LibraryRow{"libnvidia-glsi", kVersioned, kGraphics},
    LibraryRow{"libnvidia-fbc", kVersioned, kGraphics},
    LibraryRow{"libnvidia-ifr", kVersioned, kGraphics},
    LibraryRow{"libnvidia-rtcore", kVersioned, kGraphics},
    LibraryRow{"libnvoptix", kVersioned, kGraphics},
    LibraryRow{"libGLX_nvidia", kVersioned, kGraphics},
    LibraryRow{"libEGL_nvidia", kVersioned, kGraphics},
    LibraryRow{"libGLESv2_nvidia", kVersioned, kGraphics},
    LibraryRow{"libGLESv1_CM_nvidia", kVersioned, kGraphics},
    LibraryRow{"libnvidia-glvkspirv", kVersioned, kGraphics},
    LibraryRow{"libnvidia-cbl", kVersioned, kGraphics},
    LibraryRow{"libnvidia-vulkan-producer", kVersioned, kGraphics},
    LibraryRow{"libnvidia-vksc-core", kVersioned, kGraphics},
    LibraryRow{"libnvidia-present", kVersioned, kGraphics},
    LibraryRow{"libnvidia-egl-gbm", NameRule::OwnVersion, kGraphics},
    LibraryRow{"libnvidia-egl-wayland", NameRule::OwnVersion, kGraphics},
    LibraryRow{"libnvidia-egl-wayland2", NameRule::OwnVersion, kGraphics},
    LibraryRow{"libnvidia-egl-xcb", NameRule::OwnVersion, kGraphics},
    LibraryRow{"libnvidia-egl-xlib", NameRule::OwnVersion, kGraphics},
    LibraryRow{"libnvidia-api", NameRule::OwnVersion, kGraphics},
    // Front ends of drivers without GLVND. Those of Mesa never have the driver's version.
    LibraryRow{"libGL", kVersioned, kGraphics},
    LibraryRow{"libEGL", kVersioned, kGraphics},
    LibraryRow{"libGLESv1_CM", kVersioned, kGraphics},
    LibraryRow{"libGLESv2", kVersioned, kGraphics},

    LibraryRow{"libnvidia-gtk2", kVersioned, kDisplay},
    LibraryRow{"libnvidia-gtk3", kVersioned, kDisplay},
    LibraryRow{"libnvidia-wayland-client", kVersioned, kDisplay},
    LibraryRow{"libglxserver_nvidia", kVersioned, kDisplay, model::DriverFileKind::XorgModule},

    LibraryRow{"libnvidia-ngx", kVersioned, kNgx},
};

constexpr std::array kBinaries{
    FileRow{"nvidia-smi", kUtility},
    FileRow{"nvidia-debugdump", kUtility},
    FileRow{"nvidia-persistenced", kUtility},
    FileRow{"nv-fabricmanager", kUtility},
    FileRow{"nvidia-cuda-mps-control", kCompute},
    FileRow{"nvidia-cuda-mps-server", kCompute},
    FileRow{"nvidia-imex", kCompute},
    FileRow{"nvidia-imex-ctl", kCompute},
    FileRow{"nvidia-xconfig", kDisplay},
};

constexpr std::array kConfigs{
    FileRow{"OpenCL/vendors/nvidia.icd", kCompute},
    FileRow{"glvnd/egl_vendor.d/10_nvidia.json", kGraphics},
    FileRow{"egl/egl_external_platform.d/15_nvidia_gbm.json", kGraphics},
    FileRow{"egl/egl_external_platform.d/10_nvidia_wayland.json", kGraphics},
    FileRow{"egl/egl_external_platform.d/09_nvidia_wayland2.json", kGraphics},
    FileRow{"egl/egl_external_platform.d/20_nvidia_xcb.json", kGraphics},
    FileRow{"egl/egl_external_platform.d/20_nvidia_xlib.json", kGraphics},
    FileRow{"vulkan/icd.d/nvidia_icd.json", kGraphics},
    FileRow{"vulkan/icd.d/nvidia_icd.x86_64.json", kGraphics},
    FileRow{"vulkan/icd.d/nvidia_icd.aarch64.json", kGraphics},
    FileRow{"vulkan/icd.d/nvidia_layers.json", kGraphics},
    FileRow{"vulkan/implicit_layer.d/nvidia_layers.json", kGraphics},
    FileRow{"nvidia/nvoptix.bin", kGraphics},
    FileRow{"X11/xorg.conf.d/10-nvidia.conf", kDisplay},
    FileRow{"X11/xorg.conf.d/nvidia-drm-outputclass.conf", kDisplay},
};

// The MPS pipe directory is not here: only a container that requests it gets it.
constexpr std::array kSockets{
    FileRow{"nvidia-persistenced/socket", kUtility},
    FileRow{"nvidia-fabricmanager/socket", kUtility},
};

}  // namespace

std::span<const LibraryRow> library_rows() {
  return kLibraries;
}
std::span<const FileRow> binary_rows() {
  return kBinaries;
}
std::span<const FileRow> config_rows() {
  return kConfigs;
}
std::span<const FileRow> socket_rows() {
  return kSockets;
}

const LibraryRow* library_row(std::string_view stem) {
  const auto* row = std::find_if(kLibraries.begin(), kLibraries.end(),
                                 [&](const LibraryRow& r) { return r.stem == stem; });
  return row == kLibraries.end() ? nullptr : row;
}

std::vector<model::Capability> capabilities_of(CapabilityMask mask) {
  using enum model::Capability;
  std::vector<model::Capability> found;
  for (const auto capability : {Compute, Utility, Video, Graphics, Display, Ngx, Compat32}) {
    if ((mask & mask_of(capability)) != 0) found.push_back(capability);
  }
  return found;
}

bool is_needed(const model::DriverFile& file, std::span<const model::Capability> asked) {
  return model::is_needed(file, model::expand_capabilities(asked));
}

}  // namespace gantry::driver
