// SPDX-License-Identifier: Apache-2.0
// Parses NVIDIA_DRIVER_CAPABILITIES and --capabilities.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/capabilities.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace gantry::plan {

// Parses "utility,compute" or "all"; ignores white space, empty words and duplicates. Invalid for
// an unknown word, with the list of known words. "" means the default: utility and compute.
Result<std::vector<model::Capability>> parse_capabilities(std::string_view text);

std::vector<model::Capability> all_capabilities();  // with compat32

// What a device of a CDI specification brings, whatever the container's environment says.
std::vector<model::Capability> specification_capabilities();

}  // namespace gantry::plan
