// SPDX-License-Identifier: Apache-2.0
// Whether this machine is a vGPU guest, and of which host driver: a vendor-specific PCI capability
// says it.
#pragma once

#include "base/sys/host.hpp"
#include "node/labels/labels.hpp"

namespace gantry::labels {

std::optional<VgpuHost> read_vgpu(const sys::Host& host);

// From the bytes of a function's configuration space; any bytes.
std::optional<VgpuHost> parse_vgpu(std::string_view config_space);

// /sys/class/dmi/id/product_name or another file with one line; "" when it cannot be read.
std::string read_machine_type(const sys::Host& host,
                              std::string_view path = "/sys/class/dmi/id/product_name");

}  // namespace gantry::labels
