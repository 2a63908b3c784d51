// SPDX-License-Identifier: Apache-2.0
// The runtime that does the work after us: runc, crun, or what the configuration names.
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

// The first candidate that is an executable file and not this program. A name with a slash is a
// path; others are looked for in `search_path` (PATH) and then in the usual directories. NotFound
// with the places that were looked at.
Result<std::string> find_low_level(const std::vector<std::string>& candidates,
                                   std::string_view search_path);

// Beside this program: one of its own names ("nvidia-cdi-hook"), for others to call; "" when it is
// not there.
std::string own_program_path(std::string_view name);

// Another program of ours beside this one ("gantry"), to become; "" when there is none.
std::string sibling_program_path(std::string_view name);

}  // namespace gantry::runtime
