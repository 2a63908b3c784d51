// SPDX-License-Identifier: Apache-2.0
// Tables of shares.
#pragma once

#include "sharing/daemon/share_state.hpp"

#include <string>
#include <vector>

namespace gantry::cli {

// Where a table is shown.
struct Screen {
  std::size_t width = 0;   // 0: any
  std::string root = "/";  // our own advice names it; command lines of processes stay as they are
  bool whole_commands = false;
};

// The limits: one row for each share and GPU.
std::string shares_table(const std::vector<daemon::ShareState>& shares, const Screen& screen = {});

// A warning about processes that use these shares' GPUs but belong to no share; "" if there are
// none. The tables end with it.
std::string foreign_processes_text(const std::vector<daemon::ShareState>& shares,
                                   const Screen& screen);

// The current usage, the processes, and what the auditor found. The share that uses the most GPU
// time comes first. On a screen, bars fill the room that is left, columns that do not fit are left
// out, and commands are cut.
std::string usage_table(std::vector<daemon::ShareState> shares, const Screen& screen = {});

}  // namespace gantry::cli
