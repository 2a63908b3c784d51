// SPDX-License-Identifier: Apache-2.0
// What a vGPU in a guest says of its host: a vendor-specific PCI capability that no driver is
// needed to read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gantry::pci {

struct VgpuCapability {
  std::string host_driver_version;  // "550.54.16"; "" if the host does not tell it
  std::string host_driver_branch;   // "r550_40"
};

// Reads the configuration space of a PCI function. nullopt if it is not a vGPU. Accepts any bytes.
std::optional<VgpuCapability> parse_vgpu_capability(std::string_view config_space);

}  // namespace gantry::pci
