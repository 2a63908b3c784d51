// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry {

// Returns the name with the smallest edit distance, ignoring case; "" if none is close enough.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace gantry
