// SPDX-License-Identifier: Apache-2.0
// What a driver did not have yet must be absent: programs ask the loader which form of a function
// there is and take the newest. So the copy of a simulated library that goes into a machine's tree
// loses the functions that are newer than the machine's driver.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::sim {

// Takes exported functions for which `hidden` says so out of the dynamic symbol table of a 64-bit
// shared object, so that dlsym no longer finds them. Returns how many. Corrupt for anything else
// than a sound ELF file.
Result<std::size_t> hide_functions(std::string& library,
                                   const std::function<bool(std::string_view name)>& hidden);

// NVML's functions that are newer than this driver branch ("450" of 450.66).
Result<std::size_t> hide_newer_nvml_functions(std::string& library, std::uint32_t branch);

}  // namespace gantry::sim
