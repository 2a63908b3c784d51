// SPDX-License-Identifier: Apache-2.0
// The file `.manifest` of an unpacked .run file: which files the package has, and what each is for.
// Lines 1 to 8 (nine in old packages) describe the package; each line after them is a file:
// NAME MODE TYPE [NATIVE|COMPAT32] [DIRECTORY|INHERIT_PATH_DEPTH:N] [TARGET of a link]
// [MODULE:PART].
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_package {

enum class FileArchitecture : std::uint8_t { Any, Native, Compat32 };

struct ManifestFile {
  std::string path;        // inside the package: "32/libcuda.so.580.159.04"
  std::uint32_t mode = 0;  // 0755
  std::string type;        // "CUDA_LIB", "KERNEL_MODULE_SRC", "FIRMWARE", ...
  FileArchitecture architecture = FileArchitecture::Any;
  std::string directory;    // below the directory of its type, "" = that one itself; or absolute
  std::string link_target;  // of types that end in SYMLINK
  bool is_link() const { return type.ends_with("SYMLINK"); }
  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::string description;           // "NVIDIA Accelerated Graphics Driver for Linux-x86_64"
  std::string version;               // "580.159.04"
  std::vector<std::string> modules;  // "nvidia", "nvidia-uvm", ...
  std::vector<ManifestFile> files;
  bool operator==(const Manifest&) const = default;
};

inline constexpr std::size_t kManifestLimit = std::size_t{1} << 20;
inline constexpr std::size_t kManifestFiles = 20'000;

// Corrupt, with the number of the line, for anything that is not a manifest: also for paths that
// are absolute or contain "..", and for modes with set-user-id bits on anything but
// nvidia-modprobe.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace gantry::driver_package
