// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gantry::procfs {

// Whether the processor says that this machine is a virtual machine: the flag "hypervisor" of
// /proc/cpuinfo. Reads the first processor only, because all have the same flags. Accepts any
// bytes.
bool has_hypervisor_flag(std::string_view cpuinfo);

}  // namespace gantry::procfs
