// SPDX-License-Identifier: Apache-2.0
// The functions that can be made to misbehave: those that the machine's own libraries export.
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

// "*", or a function of this tree's libraries; anything else is an error that suggests the closest
// name.
Status check_fault_name(const std::string& root, std::string_view name);

}  // namespace gantry::sim
