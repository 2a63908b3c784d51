// SPDX-License-Identifier: Apache-2.0
// The files of a driver package and the lines of its .manifest, which are written together.
#pragma once

#include "base/tar/tar.hpp"
#include "sim/package/package_driver.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

class PackageContent {
 public:
  // `kind`: what follows the mode in the manifest, "CUDA_LIB NATIVE / MODULE:gpgpu". The file in
  // the archive belongs to its owner, as in NVIDIA's packages; the installer sets the mode.
  void add(std::string path, std::string content, std::uint32_t mode, std::string_view kind);
  // A link exists only in the manifest.
  void add_link(std::string_view name, std::string_view kind);
  // A file for the installer itself.
  void add_unlisted(std::string path, std::string content, std::uint32_t mode);

  // With the manifest, in the order of their paths, and with their directories.
  std::vector<tar::ArchiveFile> files(const PackageDriver& driver) const;

 private:
  std::vector<tar::ArchiveFile> files_;
  std::string lines_;
};

}  // namespace gantry::sim
