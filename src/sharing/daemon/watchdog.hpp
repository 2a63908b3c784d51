// SPDX-License-Identifier: Apache-2.0
// Keeps the share daemon running: `gantry share watch`. The daemon starts the watchdog, and starts
// it again if it ends; the watchdog starts the daemon again if it was killed, and kills one that
// hangs. So one of them alone cannot be lost.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace gantry::daemon {

inline constexpr std::string_view kWatchdogLockFile = "/run/gantry/keeper.watch";

struct WatchdogOptions {
  const sys::Host& host;
  std::vector<std::string> program;             // starts the daemon: see Client::connect_or_start
  std::chrono::milliseconds hung_after{2'000};  // without a heartbeat
  std::chrono::milliseconds first_heartbeat_within{15'000};
};

// Returns when the daemon has ended on purpose, there is no share left, or another watchdog runs.
Status watch_over_daemon(const WatchdogOptions& options, const Log& log);
bool watchdog_runs(const sys::Host& host);

}  // namespace gantry::daemon
