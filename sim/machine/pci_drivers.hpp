// SPDX-License-Identifier: Apache-2.0
// Binds and unbinds PCI functions of a simulated machine: answers writes to the files of
// /sys/bus/pci as the kernel does, by moving the links of the tree.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::sim {

// One write to driver_override, unbind, bind, drivers_probe, new_id or remove_id; any other file
// takes the text as its value. Errors have the kernel's errno: ENODEV if the function does not have
// that driver or the driver does not know it, EBUSY if it has one already.
Status write_sysfs(const sys::Host& host, const std::string& path, std::string_view text);

// modprobe of a PCI driver: vfio_pci, nvidia, snd_hda_intel. NotFound for any other module.
Status load_pci_driver(const sys::Host& host, const std::string& module);

}  // namespace gantry::sim
