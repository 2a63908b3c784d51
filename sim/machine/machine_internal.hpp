// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/machine.hpp"
#include "sim/machine/yaml.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

enum class UserFiles : std::uint8_t { Allowed, Refused };

// machines/*.yaml, compiled in: "h200", "cards/h200", "drivers/580".
std::optional<std::string_view> embedded_text(std::string_view name);
std::vector<std::string> embedded_names();  // sorted

Result<Machine> decode_machine(const YamlValue& root);
Status decode_gpu(const YamlValue& map, Gpu& gpu);
Status decode_pci(const YamlValue& map, PciFunction& function);
Status check_machine(const Machine& machine, const YamlValue& root);

}  // namespace gantry::sim
