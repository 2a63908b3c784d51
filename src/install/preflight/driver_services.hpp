// SPDX-License-Identifier: Apache-2.0
// The driver's own daemons. An installation stops them and starts them again; every other process
// that has the driver open is somebody's work.
#pragma once

#include "vm/vfio/holders.hpp"

#include <span>
#include <string_view>

namespace gantry::preflight {

// Units of systemd, in the order in which they are stopped.
std::span<const std::string_view> driver_services();

// A process of one of these units, or of a daemon that no unit has. Not one in a pod: the pod would
// start it again. gantry-nvml is the agent's: it lets go under a lease.
bool is_service_process(const vfio::Holder& holder);

}  // namespace gantry::preflight
