// SPDX-License-Identifier: Apache-2.0
// The list of all checks that `gantry doctor` runs.
#pragma once

#include "doctor/engine/check.hpp"

#include <string_view>
#include <vector>

namespace gantry::doctor {

// All checks in the order in which they run: a later finding may follow from an earlier one.
std::vector<const Check*> all_checks();
const Check* find_check(std::string_view id);  // nullptr if there is no such check

}  // namespace gantry::doctor
