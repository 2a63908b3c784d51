// SPDX-License-Identifier: Apache-2.0
// The share daemon's heartbeat, in its lock file: which process it is, and when it was last seen to
// work. So other programs can tell a daemon that hangs from one that is gone, without asking it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "sharing/daemon/share_record.hpp"

#include <chrono>
#include <optional>

namespace gantry::daemon {

struct Heartbeat {
  ProcessRef process;
  std::chrono::nanoseconds at{0};  // CLOCK_MONOTONIC
};

// `lock`: the open lock file of this process.
void write_heartbeat(int lock, const ProcessRef& self);
// The daemon ends on purpose: no program needs to start it again.
void erase_heartbeat(int lock);
// nullopt if no daemon has run here, or the last one ended on purpose.
std::optional<Heartbeat> read_heartbeat(const sys::Host& host);

// A process that should be working and is not scheduled: "is stopped", "hangs". For error messages.
std::string describe_hang(pid_t pid);

}  // namespace gantry::daemon
