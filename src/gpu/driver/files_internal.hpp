// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/driver/capability_table.hpp"
#include "gpu/driver/files.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver {

// The host that contains the driver's files, and the prefix that turns its paths into paths of the
// machine: "" except for a driver container's root.
struct DriverView {
  const sys::Host& host;
  std::string prefix;

  std::string outside(std::string_view path) const { return prefix + std::string(path); }
  std::string inside(std::string_view path) const {
    return std::string(path.substr(prefix.size()));
  }
};

// Libraries and the X.org modules among them.
void find_libraries(const DriverView& view, const DriverRoot& root, DriverFiles& out);
void find_binaries(const DriverView& view, const DriverRoot& root, DriverFiles& out);
void find_configs(const DriverView& view, const DriverRoot& root, DriverFiles& out);
void find_xorg_modules(const DriverView& view, const DriverRoot& root, DriverFiles& out);
// `machine`: the machine itself, whose kernel loads the firmware and whose /run has the sockets.
void find_firmware(const sys::Host& machine, const DriverView& view, const DriverRoot& root,
                   DriverFiles& out);
void find_sockets(const sys::Host& machine, const DriverView& view, DriverFiles& out);
// The files that GPUDirect Storage needs in a container in addition to its nodes; only if its
// module is loaded.
void find_storage_files(const sys::Host& machine, DriverFiles& out);

// Adds a regular file unless it is already in the list. Returns false if the file does not exist.
bool add_file(const DriverView& view, std::string_view path, model::DriverFileKind kind,
              CapabilityMask capabilities, std::string_view why, DriverFiles& out);

}  // namespace gantry::driver
