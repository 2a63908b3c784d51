// SPDX-License-Identifier: Apache-2.0
// The share daemon as a program: `gantry share serve`.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/nvml_child/nvml_child.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::daemon {

enum class Lifetime : std::uint8_t { UntilSignal, UntilIdle };  // idle: no share exists

struct ServeOptions {
  sys::Host host;
  Lifetime life = Lifetime::UntilSignal;
  nvml_child::NvmlChildOptions sensor;               // argv of the child process that uses NVML
  std::function<void(std::string_view line)> log{};  // JSON lines; empty: standard error
};

// Runs until SIGTERM or SIGINT, which keep the named shares: the next daemon restores them. Busy if
// the daemon already runs on this machine.
Status serve(ServeOptions options);

}  // namespace gantry::daemon
