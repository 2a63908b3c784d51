// SPDX-License-Identifier: Apache-2.0
// Tables of shares.
#pragma once

#include "sharing/daemon/share_state.hpp"

#include <string>
#include <vector>

namespace gantry::cli {

// The limits: one row for each share and GPU.
std::string shares_table(const std::vector<daemon::ShareState>& shares);

// A warning about processes that use these shares' GPUs but belong to no share; "" if there are
// none. The tables end with it.
std::string foreign_processes_text(const std::vector<daemon::ShareState>& shares);

// The current usage, the processes, and what the auditor found.
std::string usage_table(const std::vector<daemon::ShareState>& shares);

}  // namespace gantry::cli
