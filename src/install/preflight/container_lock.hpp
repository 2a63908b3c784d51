// SPDX-License-Identifier: Apache-2.0
// The lock of NVIDIA's driver containers. One that installs a driver, or has one loaded, holds
// /run/nvidia/nvidia-driver.pid with flock; a second one ends when it finds the lock taken.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::preflight {

inline constexpr std::string_view kContainerLock = "/run/nvidia/nvidia-driver.pid";

struct LockHolder {
  std::uint32_t pid = 0;  // 0: it is in a process namespace that cannot be seen from here
  std::string name;       // of the process; "" if unknown
  std::string pod;        // "namespace/name"; "" if it is in none
};
// "process 4711 (nvidia-driver) of pod gpu-operator/nvidia-driver-daemonset-x7k2p"
std::string describe(const LockHolder& holder);

// Who holds the lock, by /proc/locks. nullopt if nobody does: the file alone is what a container
// leaves that was killed. Takes no lock itself, which could end a container that starts now.
std::optional<LockHolder> container_lock_holder(const sys::Host& host);

// What helps against NVIDIA's container.
inline constexpr std::string_view kEndDriverContainer =
    "remove it first: kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge --patch "
    "'{\"spec\":{\"driver\":{\"enabled\":false}}}' for gpu-operator, else delete its DaemonSet or "
    "stop the container";

}  // namespace gantry::preflight
