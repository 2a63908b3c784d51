// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <string>
#include <string_view>

namespace gantry::procfs {

inline constexpr std::string_view kVersionPath = "/proc/driver/nvidia/version";

// /proc/driver/nvidia/version. It exists only while the driver is loaded.
struct VersionFile {
  std::string version;  // "" if the NVRM line has none
  model::ModuleFlavour flavour = model::ModuleFlavour::Unknown;
};
VersionFile parse_version_file(std::string_view text);  // accepts any bytes

// The version of the loaded driver: if the file does not contain it, /sys/module/nvidia/version.
Result<VersionFile> read_version(const sys::Host& host);

}  // namespace gantry::procfs
