// SPDX-License-Identifier: Apache-2.0
// The share daemon as a program: `gantry share serve`.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "gpu/nvml_child/nvml_child.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::daemon {

enum class Lifetime : std::uint8_t { UntilSignal, UntilIdle };  // idle: no share exists

struct ServeOptions {
  sys::Host host;
  Lifetime life = Lifetime::UntilSignal;
  nvml_child::NvmlChildOptions sensor;  // argv of the child process that uses NVML
  LogSink log{};                        // JSON lines; empty: standard error
  std::vector<std::string> watchdog{};  // argv of its watchdog; empty: none (watchdog.hpp)
};

// Runs until SIGTERM or SIGINT, which keep the named shares: the next daemon restores them. Busy if
// the daemon already runs on this machine.
Status serve(ServeOptions options);

}  // namespace gantry::daemon
