// SPDX-License-Identifier: Apache-2.0
// The GPUs of a machine as a virtual machine would get them, from the inventory and sysfs.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "vm/hypervisor/guest_gpu.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::cli {

// Cards with any driver, virtual functions that have a vGPU, and mediated devices.
std::vector<hypervisor::GuestGpu> read_guest_gpus(const sys::Host& host,
                                                  const model::Inventory& machine);

// `words`: an index, a UUID, a PCI address, the UUID of a mediated device, or CARD@ADDRESS for a
// card of another machine ("h200@0000:3b:00.0").
Result<std::vector<hypervisor::GuestGpu>> select_guest_gpus(
    std::span<const hypervisor::GuestGpu> gpus, const model::Inventory& machine,
    std::span<const std::string> words);

// All words are CARD@ADDRESS: no machine has to be read.
bool names_cards_only(std::span<const std::string> words);

}  // namespace gantry::cli
