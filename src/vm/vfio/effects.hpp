// SPDX-License-Identifier: Apache-2.0
// What bind and release do to the machine. The functions are values, so that a test can make each
// of them fail, hang or end the program, and so that a simulated machine can answer like a kernel.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

struct Effects {
  // One write to a file of sysfs or procfs. Timeout: it did not return and may still be under way.
  std::function<Status(const std::string& path, std::string_view text)> write;
  std::function<Status(const std::string& module)> load_module;
  // A program of the machine: systemctl, nvidia-smi.
  std::function<Status(const std::vector<std::string>& argv)> run;
  // Replaces a file as a whole, or removes it. The old content stays if that fails.
  std::function<Status(const std::string& path, std::string_view content)> save;
  std::function<Status(const std::string& path)> remove;
  std::function<void(std::chrono::milliseconds)> pause;
};

// How long a write may take before it counts as stuck in the kernel. A GPU that is idle leaves its
// driver in a few seconds.
inline constexpr std::chrono::seconds kWriteDeadline{30};

// Changes the machine below the root. The host must outlive the result.
Effects real_effects(const sys::Host& host, std::chrono::milliseconds deadline = kWriteDeadline);

}  // namespace gantry::vfio
