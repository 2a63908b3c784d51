// SPDX-License-Identifier: Apache-2.0
// nvidia-container-cli --debug FILE: appends one line to the file for everything that was examined
// and found, in the format of the original's logs.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "gpu/model/inventory.hpp"

#include <string>

namespace gantry::cli {

inline constexpr std::string_view kContainerCliComponent = "gantry";

// Fails if the file cannot be opened for appending. "" means no file.
Result<Log> open_container_cli_log(const std::string& path);

void log_machine(const Log& log, const model::Inventory& machine);

}  // namespace gantry::cli
