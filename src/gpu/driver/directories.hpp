// SPDX-License-Identifier: Apache-2.0
// Directories in which drivers are installed, in search order.
#pragma once

#include <array>
#include <string_view>

namespace gantry::driver {

inline constexpr std::array<std::string_view, 13> kStandardLibraryDirectories{
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu/nvidia/current",
    "/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib",
    "/lib",
    "/"};

inline constexpr std::array<std::string_view, 6> k32BitLibraryDirectories{
    "/usr/lib/i386-linux-gnu",
    "/usr/lib/i386-linux-gnu/nvidia/current",
    "/usr/lib32",
    "/lib32",
    "/lib/i386-linux-gnu",
    "/run/opengl-driver-32/lib"};

// Self-contained driver directories, each with lib64, bin, share and firmware.
inline constexpr std::array<std::string_view, 6> kSelfContainedRoots{
    "/usr/local/nvidia",   "/home/kubernetes/bin/nvidia", "/var/lib/nvidia",
    "/opt/nvidia/current", "/opt/nvidia/driver",          "/opt/nvidia"};
inline constexpr std::array<std::string_view, 4> kSelfContainedLibraries{"lib64", "lib",
                                                                         "usr/lib64", "usr/lib"};

inline constexpr std::string_view kNixDirectory = "/run/opengl-driver";
inline constexpr std::string_view kDriverContainerRoot = "/run/nvidia/driver";
inline constexpr std::string_view kWslDirectory = "/usr/lib/wsl/lib";

inline constexpr std::array<std::string_view, 6> kBinaryDirectories{
    "/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin"};
inline constexpr std::string_view kNixBinaryDirectory = "/run/current-system/sw/bin";
inline constexpr std::array<std::string_view, 3> kConfigDirectories{"/etc", "/usr/local/share",
                                                                    "/usr/share"};

inline constexpr std::array<std::string_view, 4> kXorgModuleRoots{
    "/usr/lib/xorg/modules", "/usr/lib64/xorg/modules", "/usr/X11R6/lib/modules",
    "/usr/X11R6/lib64/modules"};
inline constexpr std::array<std::string_view, 4> kXorgModuleDirectories{
    "drivers", "extensions", "updates/drivers", "updates/extensions"};

}  // namespace gantry::driver
