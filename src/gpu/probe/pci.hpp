// SPDX-License-Identifier: Apache-2.0
// NVIDIA's PCI functions as sysfs shows them, whoever drives them, and how far apart two of them
// are.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::probe {

struct PciDevice {
  model::PciFunction function;
  std::string path;                // resolved: "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0"
  std::string cpu_list;            // local_cpulist, "" when there is none
  std::uint32_t subsystem_id = 0;  // device << 16 | vendor, 0 when not given
  bool all_ones = false;           // its configuration space reads ff: it fell off the bus
};

struct PciScan {
  std::vector<PciDevice> devices;  // vendor 0x10de, by address
  bool listed = false;        // /sys/bus/pci could be read: what is not in devices is not there
  bool one_numa_node = true;  // then -1 in numa_node does not hide any distance
  std::vector<std::string> notes;

  const PciDevice* find(const model::PciAddress& address) const;
};

// Fails when /sys/bus/pci cannot be listed; a function with unreadable files becomes a note.
Result<PciScan> scan_pci(const sys::Host& host);

// nvidia-smi's distance, from the place of both in the tree of bridges. Unknown when they are below
// different host bridges and sysfs does not say to which NUMA nodes those belong.
model::PciePath pcie_path(const PciScan& scan, const PciDevice& a, const PciDevice& b);

}  // namespace gantry::probe
