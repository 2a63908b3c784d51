// SPDX-License-Identifier: Apache-2.0
// Loads the settings for the shim; `gantry explain` must see the same ones.
#pragma once

#include "container/config/settings.hpp"

#include <string>

namespace gantry::runtime {

// Reads the file that the environment names, or the default file below GANTRY_ROOT. Then
// environment variables override its values.
Result<config::Settings> load_settings(const config::EnvironmentLookup& environment);

// The root of the machine whose GPUs are used: [gantry] root, else "/". Not
// nvidia-container-cli.root: that names the driver's files, which are in the inventory.
std::string shim_root(const config::Settings& settings);

}  // namespace gantry::runtime
