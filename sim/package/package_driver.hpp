// SPDX-License-Identifier: Apache-2.0
// The drivers that `gantry sim package` can make a package of, and what differs between them.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

struct PackageDriver {
  std::string version;  // "580.159.04"
  std::string name;     // of its branch: "580"
  std::uint32_t branch = 0;
  std::string build;                 // the rest of the line in /proc/driver/nvidia/version
  std::vector<std::string> modules;  // as the fourth line of .manifest has them
  bool open = false;                 // has the open kernel modules, too
  // Another compiler than the kernel's is an error, not a warning.
  bool needs_same_compiler = false;
  bool operator==(const PackageDriver&) const = default;
};

// From a version, or from a branch alone, which means the version that gantry knows of it. NotFound
// for an unknown branch, with the known ones; Invalid for anything else.
Result<PackageDriver> find_package_driver(std::string_view wanted);

// "NVIDIA-Linux-x86_64-580.159.04"
std::string package_name(const PackageDriver& driver);

inline constexpr std::string_view kPackageDescription =
    "NVIDIA Accelerated Graphics Driver for Linux-x86_64";

}  // namespace gantry::sim
