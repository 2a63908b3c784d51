// SPDX-License-Identifier: Apache-2.0
// A share whose limits NVIDIA's MPS enforces. Each share has its own MPS daemon, which gets the
// limits, so that no variable in a client's environment can loosen them.
#pragma once

#include "base/sys/host.hpp"
#include "container/fence_mount/fence_mounts.hpp"
#include "gpu/model/container_edits.hpp"
#include "gpu/model/inventory.hpp"
#include "sharing/mps/daemon_plan.hpp"
#include "sharing/policy/share.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::backend {

// Unsupported if another MPS share uses one of its GPUs: a GPU has one MPS server, which has one
// set of limits.
Result<mps::DaemonPlan> mps_plan(const policy::Share& share, const model::Inventory& machine,
                                 std::span<const policy::Share> others);

Status start_mps(const sys::Host& host, const mps::DaemonPlan& plan);
Status stop_mps(const sys::Host& host, const mps::DaemonPlan& plan);

// The directory where clients look by default, so that no variable has to be set and none can be
// unset.
std::vector<fence_mount::BindMount> mps_bind_mounts(const sys::Host& host,
                                                    const std::string& share);
model::ContainerEdits mps_edits(const sys::Host& host, const std::string& share);

}  // namespace gantry::backend
