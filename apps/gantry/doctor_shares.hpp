// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/engine/check.hpp"

#include <optional>
#include <vector>

namespace gantry::cli {

// Reads the machine's shares from the share daemon when a check needs them. Does not start the
// daemon.
std::optional<doctor::SharesView> query_share_daemon(
    const sys::Host& host, const std::vector<const doctor::Check*>& checks);

}  // namespace gantry::cli
