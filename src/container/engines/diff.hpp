// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gantry::engines {

// A unified diff with three lines of context, as patch(1) reads it; "" if the texts are equal.
std::string unified_diff(std::string_view name, std::string_view before, std::string_view after);

}  // namespace gantry::engines
