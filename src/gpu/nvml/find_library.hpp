// SPDX-License-Identifier: Apache-2.0
// Finds the NVML library of a machine: the one that the loader would choose, else the one found
// with the driver.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/root.hpp"
#include "gpu/nvml/nvml.hpp"
#include "gpu/probe/nvml_view.hpp"

#include <string>

namespace gantry::nvml {

// Runs code of the library, which may hang or crash, so only gantry-nvml calls it.
// `module_version` selects among several installed drivers; `named` is the location of the driver,
// if the user gave one.
Result<Nvml> load_nvml(const sys::Host& host, const std::string& module_version,
                       const std::string& ld_cache, const driver::DriverLocation& named = {});

// The view if the library was not loaded.
probe::NvmlView not_loaded(const Error& why);

}  // namespace gantry::nvml
