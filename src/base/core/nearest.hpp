// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gantry {

// The number of bytes to insert, remove or replace so that `a` becomes `b`. Takes a.size() times
// b.size() steps: bound both.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the name with the smallest edit distance, ignoring case; "" if none is close enough.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace gantry
