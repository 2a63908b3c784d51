// SPDX-License-Identifier: Apache-2.0
// Finds the NVML library of a machine: the one that the loader would choose, else the one found
// with the driver.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/nvml.hpp"
#include "gpu/driver/root.hpp"

#include <string>

namespace gantry::probe {

// Runs code of the library, which may hang or crash, so call it in a child process.
// `module_version` selects among several installed drivers; `named` is the location of the driver,
// if the user gave one.
Result<driver::Nvml> load_nvml(const sys::Host& host, const std::string& module_version,
                               const std::string& ld_cache,
                               const driver::DriverLocation& named = {});

}  // namespace gantry::probe
