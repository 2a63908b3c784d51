// SPDX-License-Identifier: Apache-2.0
// A share that NVIDIA's MPS holds: a daemon of its own, told the share's limits, so that nothing in
// a client's environment can loosen them.
#pragma once

#include "enclose/enclosure.hpp"
#include "model/container_edits.hpp"
#include "model/inventory.hpp"
#include "mps/plan.hpp"
#include "share/share.hpp"
#include "sys/host.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::cli {

// Unsupported where another MPS share has one of its GPUs: a GPU has one MPS server, and that one
// set of limits.
Result<mps::DaemonPlan> mps_plan(const share::Share& share, const model::Inventory& machine,
                                 std::span<const share::Share> others);

Status start_mps(const sys::Host& host, const mps::DaemonPlan& plan);
Status stop_mps(const sys::Host& host, const mps::DaemonPlan& plan);

// Where clients look without being told: no variable has to be set, and none can be unset.
std::vector<enclose::Bound> mps_places(const sys::Host& host, const std::string& share);
model::ContainerEdits mps_edits(const sys::Host& host, const std::string& share);

}  // namespace gantry::cli
