// SPDX-License-Identifier: Apache-2.0
// The settings as the shim has them; `gantry explain` must see the very same.
#pragma once

#include "container/config/settings.hpp"

#include <string>

namespace gantry::runtime {

// The file that the environment names is the caller's, the usual one is the machine's (below
// GANTRY_ROOT); then the environment's own word.
Result<config::Settings> load_settings(const config::EnvironmentLookup& environment);

// The machine whose GPUs are given: [gantry] root, else "/". Not nvidia-container-cli.root: that is
// where the driver's files are, which the inventory knows.
std::string shim_root(const config::Settings& settings);

}  // namespace gantry::runtime
