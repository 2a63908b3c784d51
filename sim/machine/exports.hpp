// SPDX-License-Identifier: Apache-2.0
// Functions that a driver does not have yet must be absent: programs look up all forms of a
// function and take the newest. So the functions that are newer than the machine's driver are
// removed from the library copy in its tree.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::sim {

// Removes the exported functions for which `hidden` returns true from the dynamic symbol table of a
// 64-bit shared object, so that dlsym does not find them. Returns their number. Corrupt if it is
// not a valid ELF file.
Result<std::size_t> hide_functions(std::string& library,
                                   const std::function<bool(std::string_view name)>& hidden);

// NVML's functions that are newer than this driver branch ("450" of 450.66).
Result<std::size_t> hide_newer_nvml_functions(std::string& library, std::uint32_t branch);

}  // namespace gantry::sim
