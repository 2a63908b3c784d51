// SPDX-License-Identifier: Apache-2.0
// Small, valid ELF files for the parts of a driver that are never called: enough for the loader,
// ldconfig, readelf and other ELF readers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::sim {

enum class ElfClass : unsigned char { Bits32, Bits64 };

// A shared object without symbols; needs libc.so.6, as every driver library does.
std::string shared_object(std::string_view soname, ElfClass bits);

// A static program that prints one line and exits 0.
std::string static_program(std::string_view line);

// A kernel object with a .modinfo section of "key=value".
std::string kernel_object(const std::vector<std::pair<std::string, std::string>>& modinfo);

}  // namespace gantry::sim
