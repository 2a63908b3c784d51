// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::vfio {

// The unit of the system's systemd that the process belongs to: "nvidia-dcgm.service". `cgroup` is
// its /proc/PID/cgroup. "" if it is in none, or if that cannot be proven: users may have cgroups of
// their own, and name them as they like.
std::string system_unit(const sys::Host& host, std::uint32_t pid, std::string_view cgroup);

}  // namespace gantry::vfio
