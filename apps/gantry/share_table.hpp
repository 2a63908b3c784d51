// SPDX-License-Identifier: Apache-2.0
// Tables of shares.
#pragma once

#include "sharing/daemon/share_state.hpp"

#include <string>
#include <vector>

namespace gantry::cli {

// The limits: one row for each share and GPU. A width of 0: lines of any length.
std::string shares_table(const std::vector<daemon::ShareState>& shares, std::size_t width = 0);

// A warning about processes that use these shares' GPUs but belong to no share; "" if there are
// none. The tables end with it.
std::string foreign_processes_text(const std::vector<daemon::ShareState>& shares);

// The room that a table has.
struct Screen {
  std::size_t width = 0;  // 0: any
  bool whole_commands = false;
};

// The current usage, the processes, and what the auditor found. The share that uses the most GPU
// time comes first. On a screen, bars fill the room that is left, columns that do not fit are left
// out, and commands are cut.
std::string usage_table(std::vector<daemon::ShareState> shares, const Screen& screen = {});

}  // namespace gantry::cli
