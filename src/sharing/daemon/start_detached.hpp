// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::daemon {

// Starts a program that goes on when we end: not our child, no terminal, no session, none of our
// descriptors; its standard error is added to the file `log` (log_file.hpp). NotFound where it
// cannot be executed. Gives where its words begin in that file.
Result<std::uint64_t> start_detached(const std::vector<std::string>& argv, const std::string& log);

}  // namespace gantry::daemon
