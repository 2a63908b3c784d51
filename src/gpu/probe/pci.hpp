// SPDX-License-Identifier: Apache-2.0
// NVIDIA's PCI functions as sysfs shows them, with any driver, and the distance between two of
// them.
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
  bool all_ones = false;           // its configuration space reads ff: it has fallen off the bus
};

struct PciScan {
  std::vector<PciDevice> devices;  // vendor 0x10de, by address
  bool listed =
      false;  // /sys/bus/pci could be read: a function that is not in devices does not exist
  bool one_numa_node = true;  // then a numa_node of -1 hides no distance
  std::vector<std::string> notes;

  const PciDevice* find(const model::PciAddress& address) const;
};

// Fails if /sys/bus/pci cannot be listed. A function with unreadable files becomes a note.
Result<PciScan> scan_pci(const sys::Host& host);

// The distance in nvidia-smi's terms, from the positions of both in the tree of bridges. Unknown if
// they are below different host bridges and sysfs does not give their NUMA nodes.
model::PciePath pcie_path(const PciScan& scan, const PciDevice& a, const PciDevice& b);

}  // namespace gantry::probe
