// SPDX-License-Identifier: Apache-2.0
// The files of the driver's user space: libraries, programs, firmware, ICD and JSON files, X.org
// modules, sockets; each with the capabilities that need it and why it was chosen.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/root.hpp"
#include "gpu/model/inventory.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver {

// A file that was not found. This is rarely a fault: no driver has all of them.
struct MissingFile {
  std::string
      name;  // "libnvidia-nscq.so.580.159.04", "nvidia-imex", "vulkan/icd.d/nvidia_icd.json"
  model::DriverFileKind kind = model::DriverFileKind::Library;
  std::vector<model::Capability> capabilities;
  bool operator==(const MissingFile&) const = default;
};

struct DriverFiles {
  // Libraries first, then programs, configuration, X.org modules, firmware and sockets. A 32-bit
  // library has Compat32 among its capabilities; only a container that requests Compat32 and
  // another of its capabilities gets it.
  std::vector<model::DriverFile> files;
  std::string
      mps_pipe_directory;  // "/tmp/nvidia-mps" when MPS runs; for containers that ask for it
  std::vector<std::string> notes;

  // The file that a program finds under this name: by SONAME, link or file name; 64-bit only.
  const model::DriverFile* library(std::string_view name) const;
};

// Never fails: files that cannot be read are omitted or noted.
DriverFiles find_files(const sys::Host& host, const DriverRoot& root);

// The rows of the table that have no file in `found`.
std::vector<MissingFile> missing_files(const DriverFiles& found, const DriverRoot& root);

// Copies the root's facts into the inventory. The caller sets the version and flavour of the kernel
// module.
void copy_to_inventory(const DriverRoot& root, model::Driver& driver);

}  // namespace gantry::driver
