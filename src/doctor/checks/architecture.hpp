// SPDX-License-Identifier: Apache-2.0
// A card's generation by its PCI device id, for when NVML does not answer.
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry::doctor {

std::string_view architecture_of_device(std::uint16_t device);  // "" when not known

enum class ModuleSupport : std::uint8_t { Either, OpenOnly, ProprietaryOnly };
ModuleSupport module_support(std::string_view architecture);

}  // namespace gantry::doctor
