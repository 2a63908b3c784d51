// SPDX-License-Identifier: Apache-2.0
// NVIDIA_DRIVER_CAPABILITIES and --capabilities: words into capabilities.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/capabilities.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace gantry::plan {

// "utility,compute", "all"; white space and empty words are passed over, nothing is twice. Invalid
// for a word that is none, with the words there are. "" is the default: utility and compute.
Result<std::vector<model::Capability>> parse_capabilities(std::string_view text);

std::vector<model::Capability> all_capabilities();  // with compat32

}  // namespace gantry::plan
