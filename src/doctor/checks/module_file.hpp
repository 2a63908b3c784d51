// SPDX-License-Identifier: Apache-2.0
// Kernel modules on disk.
#pragma once

#include "base/sys/host.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::doctor {

// Path of NAME.ko, compressed or not, below /lib/modules/RELEASE; "" if there is none.
std::string find_module_file(const sys::Host& host, std::string_view release,
                             std::string_view name);

// Returns true if the file ends with a signature; nullopt if it is compressed or unreadable.
std::optional<bool> module_is_signed(const sys::Host& host, const std::string& path);

// Returns true if one kernel release is newer than the other; compares number by number.
bool newer_release(std::string_view a, std::string_view b);

// Parses a number like the kernel: 0x is hexadecimal, a leading 0 octal, everything else decimal.
std::optional<std::uint64_t> parse_option_number(std::string_view text);

}  // namespace gantry::doctor
