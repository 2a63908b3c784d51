// SPDX-License-Identifier: Apache-2.0
// The file of NVIDIA's vgpu-device-manager: named sets of vGPUs for the GPUs of a machine.
#pragma once

#include "base/core/result.hpp"
#include "vm/vgpu/plan.hpp"
#include "vm/vgpu/vgpu_host.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vgpu {

// One entry of a set: these vGPUs on each of these GPUs.
struct ConfigEntry {
  std::vector<std::string> device_filter;  // "0x223610DE"; empty: every model
  bool all_devices = false;
  std::vector<unsigned> devices;          // indexes, unless all_devices
  std::map<std::string, unsigned> vgpus;  // type -> count; empty: no vGPUs
  int line = 0;
  bool operator==(const ConfigEntry&) const = default;
};

struct VgpuConfig {
  std::string file;  // for messages
  std::map<std::string, std::vector<ConfigEntry>> sets;
};

inline constexpr std::string_view kDefaultSet = "default";

// Unknown keys, wrong types, counts of 0 and other versions are errors with file and line.
Result<VgpuConfig> parse_config(std::string_view text, std::string_view file);

// The vGPUs that the set wants on each GPU. A GPU that no entry names is left alone. NotFound if
// the set does not exist; Invalid if an entry names a GPU that does not exist, or if two entries
// name the same GPU.
Result<std::vector<DesiredVgpus>> select_set(const VgpuConfig& config, std::string_view name,
                                             const std::vector<VgpuGpu>& gpus);

// The set alone, without a machine.
Result<const std::vector<ConfigEntry>*> find_set(const VgpuConfig& config, std::string_view name);

}  // namespace gantry::vgpu
