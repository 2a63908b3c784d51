// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/boot.hpp"

#include <map>

namespace gantry::sim {

enum class BootKind : std::uint8_t { RootPort, UpstreamPort, DownstreamPort, Endpoint };

struct BootNode {
  const PciFunction* function = nullptr;
  BootKind kind = BootKind::Endpoint;
  model::PciAddress booted = {};
  bool multifunction = false;  // other functions of its slot are there, too
  std::vector<BootNode> children = {};
};

struct BootBus {
  std::uint8_t number = 0;
  bool main = false;              // the bus that every machine of QEMU has
  std::int32_t numa_node = -1;    // only another bus can be on a node
  std::vector<BootNode> devices;  // by address
};

// The root buses by number, with the addresses that the firmware will give.
Result<std::vector<BootBus>> boot_topology(const Machine& machine);

using BootAddresses = std::map<model::PciAddress, model::PciAddress>;  // described -> booted
BootAddresses boot_addresses(const std::vector<BootBus>& buses);

// The text that sim/kernel/description.c reads.
std::string boot_description(const Machine& machine, const BootAddresses& addresses);

// "nvidia nvidia-uvm": what the host loads at its start.
std::string boot_modules(const Machine& machine);

// -device arguments of all buses and functions.
std::vector<std::string> boot_devices(const std::vector<BootBus>& buses, std::uint32_t bar_divisor);

}  // namespace gantry::sim
