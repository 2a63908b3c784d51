// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::daemon {

// Starts a program that continues when this process ends: not our child, no terminal, no session,
// none of our descriptors, limits and cgroups. Its standard error is appended to the file `log`
// (log_file.hpp). NotFound if it cannot be executed. Returns the offset in that file where its
// output begins.
Result<std::uint64_t> start_detached(const std::vector<std::string>& argv, const std::string& log);

}  // namespace gantry::daemon
