// SPDX-License-Identifier: Apache-2.0
// The processes that have a device node open. A GPU that a process has open cannot leave its
// driver: the unbind would wait in the kernel.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

struct Holder {
  std::uint32_t pid = 0;
  std::string name;     // /proc/PID/comm, at most 15 characters
  std::string command;  // its arguments, shortened; its name if it shows none
  std::string node;     // "/dev/nvidia0"
  std::string pod;      // "namespace/name", or the pod's UID if its name is unknown; "" if no pod
  std::string unit;     // "nvidia-dcgm.service"; "" unless it is certainly a service of the system
  unsigned opens = 1;   // how often it has the node open
  bool operator==(const Holder&) const = default;
};

// "pid 4711 (python3 train.py) of pod default/train has /dev/nvidia0 open"
std::string describe(const Holder& holder);

// All holders of any of these nodes, by pid: open descriptors and mappings. A process with several
// of the nodes is there once for each.
struct HolderSearch {
  std::vector<Holder> holders;
  // Processes whose descriptors may not be read, as those of other users without CAP_SYS_PTRACE:
  // it cannot be known whether they are holders.
  std::vector<std::uint32_t> unreadable;
};
HolderSearch search_holders(const sys::Host& host, std::span<const std::string> nodes);

// "3 processes cannot be looked into (pid 1, 22, 71)"
std::string describe_unreadable(std::span<const std::uint32_t> pids);
inline constexpr std::string_view kReadAllProcesses =
    "run it as root with the capability SYS_PTRACE; in a pod: securityContext.privileged: true";
// Busy if there is a process that cannot be looked into.
Status check_all_readable(const HolderSearch& search);

// The holders alone.
std::vector<Holder> find_holders(const sys::Host& host, std::span<const std::string> nodes);

// "namespace/name" of the pod with this UID; the UID if its name is not known on this machine.
std::string pod_name(const sys::Host& host, const std::string& uid);

// Returns true if a process of Gantry waits in the kernel for a second and cannot be killed: a
// write that did not return in time is still under way.
bool has_stuck_writer(const sys::Host& host);

}  // namespace gantry::vfio
