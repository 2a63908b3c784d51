// SPDX-License-Identifier: Apache-2.0
// The keeper as a program: `gantry share serve`.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/nvml_child/nvml_child.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::daemon {

enum class Lifetime : std::uint8_t { UntilSignal, UntilIdle };  // idle: no share is left

struct ServeOptions {
  sys::Host host;
  Lifetime life = Lifetime::UntilSignal;
  nvml_child::NvmlChildOptions sensor;  // its program: what becomes the child that has NVML
  std::function<void(std::string_view line)> log{};  // JSON lines; none: standard error
};

// Until SIGTERM or SIGINT, which leave named shares as they are: the next keeper takes them up.
// Busy when this machine has a keeper already.
Status serve(ServeOptions options);

}  // namespace gantry::daemon
