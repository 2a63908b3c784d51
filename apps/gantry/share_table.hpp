// SPDX-License-Identifier: Apache-2.0
// Shares for people.
#pragma once

#include "sharing/daemon/share_state.hpp"

#include <string>
#include <vector>

namespace gantry::cli {

// Limits: a row for each share and GPU.
std::string shares_table(const std::vector<daemon::ShareState>& shares);

// Whoever uses GPUs of these shares without belonging to one; "" for nobody. The tables end with
// it.
std::string foreign_processes_text(const std::vector<daemon::ShareState>& shares);

// What they use of them now, their processes, and what the auditor found.
std::string usage_table(const std::vector<daemon::ShareState>& shares);

}  // namespace gantry::cli
