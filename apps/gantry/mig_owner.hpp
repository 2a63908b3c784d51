// SPDX-License-Identifier: Apache-2.0
// Joins `gantry mig` with the ledger of owners: instances that go are withdrawn from the kubelet
// and unused before they are destroyed; instances that stay keep their pods. A change of the mode
// needs the whole card.
#pragma once

#include "gantry/command.hpp"
#include "gpu/mig_change/steps.hpp"
#include "gpu/ownership/owner_change.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

// nullopt: the whole card.
std::optional<ownership::ChangedParts> parts_of(const sys::Host& host, const mig::MigGpu& gpu,
                                                const std::vector<mig_change::Step>& steps);

// The device nodes of one compute instance: its own, and that of its GPU instance.
std::vector<std::string> mig_nodes(const sys::Host& host, const mig::MigGpu& gpu,
                                   unsigned gpu_instance, unsigned compute_instance);

// "process 4711 (train)"
std::string name_process(const sys::Host& host, std::uint32_t pid);

struct MigLease {
  const mig::MigGpu& gpu;
  const std::vector<mig_change::Step>& steps;
  std::string what;  // the command, as it can be typed again
  std::chrono::milliseconds wait{0};
};

// Busy if another kind of command left the GPU in between.
Status check_no_other_change(const sys::Host& host, const model::PciAddress& gpu);

// Runs `act` while nothing uses what it removes. Without steps, and without a change that was
// interrupted, it needs no lease and only keeps other commands away.
Status with_mig_lease(const sys::Host& host, const MigLease& lease, Context& context,
                      const std::function<Status()>& act);

}  // namespace gantry::cli
