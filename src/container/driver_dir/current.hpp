// SPDX-License-Identifier: Apache-2.0
// The prepared driver directory that is in use, as far as the start of a container needs it.
// Reading it takes a readlink and one small file.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>

namespace gantry::driver_dir {

struct CurrentDriver {
  std::string name;       // "580.159.04-1f2e3d4c5b6a7988"
  std::string directory;  // "/var/lib/gantry/driver/580.159.04-...", inside the host's root
  std::string version;    // "580.159.04"
};

// NotFound if no directory is published, Corrupt if it is incomplete; both errors name the command
// that creates it.
Result<CurrentDriver> current(const sys::Host& host);

// Returns true if the directory is for this driver version (of /proc/driver/nvidia/version).
bool serves_driver(const CurrentDriver& current, std::string_view driver_version);

// The prefix that a container engine must put before paths of this machine: "", or the real path
// of a simulated machine's tree.
std::string simulated_engine_root(const sys::Host& host);

}  // namespace gantry::driver_dir
