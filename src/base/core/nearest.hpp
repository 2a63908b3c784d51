// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry {

// The name that takes the fewest changes of single letters, upper and lower case being equal; ""
// when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace gantry
