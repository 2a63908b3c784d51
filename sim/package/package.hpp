// SPDX-License-Identifier: Apache-2.0
// A simulated NVIDIA-Linux-x86_64-VERSION.run: an installer archive that behaves as NVIDIA's does,
// with the simulated libraries and programs and the source of the simulated kernel modules. The
// same version gives the same bytes.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <string>

namespace gantry::sim {

struct PackageOptions {
  std::string driver;       // a version or a branch
  std::string source_tree;  // "": the one that this program is in
  std::string libraries;    // directory of the simulated libraries; "": see find_libraries()
};

struct DriverPackage {
  std::string file_name;  // "NVIDIA-Linux-x86_64-580.159.04.run"
  std::string version;
  std::size_t files = 0;
  std::string bytes;
};

Result<DriverPackage> make_driver_package(const PackageOptions& options);

}  // namespace gantry::sim
