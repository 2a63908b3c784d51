// SPDX-License-Identifier: Apache-2.0
// Options of modules, as modprobe would give them. The modules are loaded by system call, which
// knows neither /etc/modprobe.d nor the kernel's command line.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::driver_setup {

// "options nvidia NVreg_DeviceFileMode=0660" of one file of modprobe.d; "" if it has none. Names
// may have dashes or underscores, and a line may go on after a backslash.
std::string options_in_file(std::string_view text, std::string_view module);

// "nvidia.NVreg_EnableGpuFirmware=0" of the kernel's command line.
std::string options_in_command_line(std::string_view text, std::string_view module);

// Of all files of modprobe.d, in modprobe's order, and of the command line, which comes last.
std::string module_options(const sys::Host& host, std::string_view module);

}  // namespace gantry::driver_setup
