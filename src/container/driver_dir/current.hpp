// SPDX-License-Identifier: Apache-2.0
// The prepared driver directory that is in force. All that the start of a container needs to know
// of it: reading it is a readlink and one small file.
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

// NotFound when nothing is published, Corrupt when what is there is not whole; both say how to make
// it.
Result<CurrentDriver> current(const sys::Host& host);

// Whether it serves this driver, the one of /proc/driver/nvidia/version.
bool serves_driver(const CurrentDriver& current, std::string_view driver_version);

// What a container engine must put before this machine's paths: nothing, unless the root is a
// simulated tree; real engines mount from that by its real place.
std::string simulated_engine_root(const sys::Host& host);

}  // namespace gantry::driver_dir
