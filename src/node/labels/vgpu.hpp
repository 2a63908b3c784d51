// SPDX-License-Identifier: Apache-2.0
// Finds out whether this machine is a vGPU guest, and the version of the host driver, from a
// vendor-specific PCI capability.
#pragma once

#include "base/sys/host.hpp"
#include "node/labels/labels.hpp"

namespace gantry::labels {

std::optional<VgpuHost> read_vgpu(const sys::Host& host);

// Reads /sys/class/dmi/id/product_name or another file with one line; "" if it cannot be read.
std::string read_machine_type(const sys::Host& host,
                              std::string_view path = "/sys/class/dmi/id/product_name");

}  // namespace gantry::labels
