// SPDX-License-Identifier: Apache-2.0
// Kernel modules on disk.
#pragma once

#include "base/sys/host.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::doctor {

// Path of NAME.ko, compressed or not, below /lib/modules/RELEASE; "" when there is none.
std::string find_module_file(const sys::Host& host, std::string_view release,
                             std::string_view name);

// Whether the file ends with a signature; nullopt for compressed or unreadable ones.
std::optional<bool> module_is_signed(const sys::Host& host, const std::string& path);

// Whether one kernel release is newer than another, number by number.
bool newer_release(std::string_view a, std::string_view b);

// As the kernel reads a module option: 0x is hexadecimal, a leading 0 octal, else decimal.
std::optional<std::uint64_t> parse_option_number(std::string_view text);

}  // namespace gantry::doctor
