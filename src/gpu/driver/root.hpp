// SPDX-License-Identifier: Apache-2.0
// Where the driver's user space is on a machine, and of which version. Looked for in the standard
// directories, in ld.so.cache, and in the places of drivers that are installed elsewhere:
// directories of their own (/usr/local/nvidia, GKE's /home/kubernetes/bin/nvidia,
// /usr/lib/nvidia-384, NixOS) and a driver container's root (/run/nvidia/driver), inside which
// symlinks are resolved.
#pragma once

#include "base/sys/host.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver {

// A directory that holds libraries of the chosen version.
struct LibraryDirectory {
  std::string path;                // symlinks resolved
  std::string why;                 // "standard directory", "/usr/lib/libcuda.so.1 points there"
  std::vector<std::string> names;  // those that may be the driver's, sorted
  std::vector<std::string> cached_names;  // those that ld.so.cache names, sorted
};

// Another driver's libraries beside the chosen ones: reported, never mixed in.
struct OtherDriver {
  std::string version;
  std::string directory;
  bool operator==(const OtherDriver&) const = default;
};

struct DriverRoot {
  std::string root = "/";      // "/usr/local/nvidia" where the driver has a directory of its own
  bool is_chroot = false;      // paths below `root` are written as if `root` were "/"
  std::string kernel_version;  // "" when the module is not loaded
  std::string
      library_version;  // of the chosen libraries; differs from kernel_version when none match
  std::string
      library_directory;  // where the 64-bit libcuda is; libnvidia-ml when there is no libcuda
  std::vector<LibraryDirectory> directories;
  std::vector<OtherDriver> others;
  std::vector<std::string> notes;  // one sentence each, for people

  bool found() const { return !library_directory.empty(); }
};

// What a person said about the driver's place. Then nowhere else is looked.
struct DriverLocation {
  std::string root;                    // a tree of the driver's files, inside which links stay
  std::vector<std::string> libraries;  // directories of libraries, instead of the known places
};

// Never fails: a machine without the driver gives an empty root and a note that says where was
// looked. `kernel_version`: what the kernel module says; read from the host when not given.
// `ld_cache`: the host's cache; a driver container's root has its own in the usual place.
inline constexpr std::string_view kLoaderCache = "/etc/ld.so.cache";
DriverRoot find_root(const sys::Host& host,
                     std::optional<std::string> kernel_version = std::nullopt,
                     std::string_view ld_cache = kLoaderCache, const DriverLocation& named = {});

}  // namespace gantry::driver
