// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/engine/check.hpp"

#include <optional>
#include <vector>

namespace gantry::cli {

// The machine's shares as their keeper has them, when a check wants to know. None is started.
std::optional<doctor::SharesView> query_share_daemon(
    const sys::Host& host, const std::vector<const doctor::Check*>& checks);

}  // namespace gantry::cli
