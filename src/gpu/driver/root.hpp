// SPDX-License-Identifier: Apache-2.0
// Finds the directory and the version of the driver's user space. Searches the standard
// directories, ld.so.cache, and the directories of drivers that are installed elsewhere:
// self-contained ones (/usr/local/nvidia, GKE's /home/kubernetes/bin/nvidia, /usr/lib/nvidia-384,
// NixOS) and a driver container's root (/run/nvidia/driver), inside which symlinks are resolved.
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

// Libraries of another driver version: reported, never mixed with the chosen ones.
struct OtherDriver {
  std::string version;
  std::string directory;
  bool operator==(const OtherDriver&) const = default;
};

struct DriverRoot {
  std::string root = "/";      // "/usr/local/nvidia" for a self-contained driver directory
  bool is_chroot = false;      // paths below `root` are written as if `root` were "/"
  std::string kernel_version;  // "" when the module is not loaded
  std::string
      library_version;  // of the chosen libraries; differs from kernel_version if none match
  std::string
      library_directory;  // where the 64-bit libcuda is; libnvidia-ml when there is no libcuda
  std::vector<LibraryDirectory> directories;
  std::vector<OtherDriver> others;
  std::vector<std::string> notes;  // one sentence each, for people

  bool found() const { return !library_directory.empty(); }
};

// The location of the driver as given by the user. Then no other place is searched.
struct DriverLocation {
  std::string root;                    // a tree of the driver's files; links are resolved inside it
  std::vector<std::string> libraries;  // library directories to search instead of the known ones
};

// Never fails: a machine without the driver gives an empty root and a note that lists the searched
// directories. `kernel_version`: the version of the kernel module; read from the host if not given.
// `ld_cache`: the host's cache; a driver container's root has its own cache in the usual place.
inline constexpr std::string_view kLoaderCache = "/etc/ld.so.cache";
DriverRoot find_root(const sys::Host& host,
                     std::optional<std::string> kernel_version = std::nullopt,
                     std::string_view ld_cache = kLoaderCache, const DriverLocation& named = {});

}  // namespace gantry::driver
