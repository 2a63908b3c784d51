// SPDX-License-Identifier: Apache-2.0
// The places of PCI functions in the tree of bridges, and the resulting path between two GPUs.
#pragma once

#include "sim/machine/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

inline constexpr std::size_t kMaxBridges = 16;

std::vector<const PciFunction*> pci_functions(const Machine& machine);  // GPUs first

// Bridges from the root down to the function, itself not included. At most kMaxBridges + 1.
std::vector<model::PciAddress> bridges_above(const Machine& machine, const PciFunction& function);

// "/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0"
std::string sysfs_directory(const Machine& machine, const PciFunction& function);

// nvmlGpuTopologyLevel_t: 0 internal, 10 single, 20 multiple, 30 hostbridge, 40 node, 50 system
std::uint8_t topology_level(const Machine& machine, const PciFunction& a, const PciFunction& b);

// "0-3,8" -> {0,1,2,3,8}; nullopt for anything else or more than 4096 CPUs
std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);
std::string cpu_mask(const std::vector<std::uint32_t>& cpus, std::size_t cpu_count);  // "0000ffff"
std::size_t cpu_count(const Machine& machine);
std::string local_cpus(const Machine& machine, std::int32_t numa_node);  // list of a node; -1: all

}  // namespace gantry::sim
