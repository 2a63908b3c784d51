// SPDX-License-Identifier: Apache-2.0
// Reads PCI functions and IOMMU groups from /sys.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "vm/pci/function.hpp"

#include <string>
#include <string_view>

namespace gantry::pci {

// "/sys/bus/pci/devices/0000:3b:00.0"
std::string device_path(const model::PciAddress& address);

// Fails if /sys/bus/pci cannot be listed. A function whose ids cannot be read becomes a note.
Result<Bus> read_bus(const sys::Host& host);

// One function. NotFound if it is not on the bus: it was removed, or never existed.
Result<Function> read_function(const sys::Host& host, const model::PciAddress& address);

// Only which card it is: reads no file that could wait for the lock of the device.
Result<CardId> read_card_id(const sys::Host& host, const model::PciAddress& address);

// What may change from one moment to the next, for checks between two writes.
std::string read_driver(const sys::Host& host, const model::PciAddress& address);
// Timeout if the kernel holds the lock of the device, as it does while an unbind waits.
Result<std::string> read_driver_override(const sys::Host& host, const model::PciAddress& address);

// The device serial number in a configuration space, "" if it has none. Accepts any bytes.
std::string find_serial(std::string_view config_space);

}  // namespace gantry::pci
