// SPDX-License-Identifier: Apache-2.0
// The state of the driver as the kernel shows it, cheap enough to read every second.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <vector>

namespace gantry::nvml_child {

struct DriverState {
  std::string version;  // "" when it is not loaded
  std::string why_not;
  std::vector<std::string> gpus;       // PCI addresses
  std::vector<std::string> instances;  // "gpu0/gi1", "gpu0/gi1/ci0"
  bool operator==(const DriverState&) const = default;
};

DriverState read_driver_state(const sys::Host& host);  // without the instances

}  // namespace gantry::nvml_child
