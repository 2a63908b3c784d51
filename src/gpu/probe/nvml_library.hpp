// SPDX-License-Identifier: Apache-2.0
// The NVML library of a machine: what its loader would take, else what is found with the driver.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/driver/nvml.hpp"
#include "gpu/driver/root.hpp"

#include <string>

namespace gantry::probe {

// Runs the library's code, which may hang or crash: for a child process. `module_version` helps to
// choose where several drivers lie about; `named` is where the driver is, when that was said.
Result<driver::Nvml> load_nvml(const sys::Host& host, const std::string& module_version,
                               const std::string& ld_cache,
                               const driver::DriverLocation& named = {});

}  // namespace gantry::probe
