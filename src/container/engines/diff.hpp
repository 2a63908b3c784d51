// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gantry::engines {

// The lines that differ, "-" and "+" before them, three lines around each change, as patch(1) reads
// it. "" when nothing differs.
std::string unified_diff(std::string_view name, std::string_view before, std::string_view after);

}  // namespace gantry::engines
