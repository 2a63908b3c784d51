// SPDX-License-Identifier: Apache-2.0
// All shares of this machine: those of the share daemon, and those of hardware and other daemons,
// which only a CDI specification records.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "sharing/daemon/client.hpp"

#include <string>
#include <vector>

namespace gantry::backend {

// The command that starts the share daemon.
std::vector<std::string> daemon_command();
// The command that starts its watchdog.
std::vector<std::string> watchdog_command(const sys::Host& host);
// Connects to the share daemon. Starts it if a daemon that was killed left shares behind. NotFound
// if there are no shares.
Result<daemon::Client> connect_to_daemon(const sys::Host& host);

// All shares. If the daemon is not running, only those that a CDI specification records.
Result<std::vector<daemon::ShareState>> list_all_shares(const sys::Host& host);
// NotFound, with the command that lists the shares.
Result<daemon::ShareState> find_share(const sys::Host& host, const std::string& name);

}  // namespace gantry::backend
