// SPDX-License-Identifier: Apache-2.0
// Which vfio driver fits a device. Some devices need a variant of vfio-pci: the GPUs of Grace
// Hopper need nvgrace_gpu_vfio_pci, which also gives the guest the memory of the GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

inline constexpr std::string_view kNvSwitchDriver = "nvidia-nvswitch";

// A line "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci" of modules.alias.
struct VfioAlias {
  std::string pattern;  // with the prefix "vfio_pci:"
  std::string module;
  bool operator==(const VfioAlias&) const = default;
};

// Only the lines of vfio drivers. Accepts any bytes.
std::vector<VfioAlias> parse_vfio_aliases(std::string_view modules_alias);

// The module for a device with this modalias ("pci:v000010DEd..."): of all that match, the one with
// the fewest wildcards; vfio_pci if none matches.
std::string choose_vfio_module(const std::vector<VfioAlias>& aliases, std::string_view modalias);

// A driver and its module may spell "-" and "_" differently: vfio-pci is in vfio_pci.
std::string module_name(std::string_view driver);
bool same_driver(std::string_view a, std::string_view b);

// The module that a driver is in: NVIDIA's module nvidia has the driver nvidia-nvswitch, too.
std::string module_of(std::string_view driver);

// The name that the module's driver has before it is loaded.
std::string expected_driver(std::string_view module);

}  // namespace gantry::vfio
