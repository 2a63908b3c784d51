// SPDX-License-Identifier: Apache-2.0
// What containers start from, kept as the machine is: the driver's directory, the inventory, and
// the CDI specifications that answers name.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "node/agent/log.hpp"
#include "node/metrics/snapshot.hpp"
#include "node/options/options.hpp"
#include "node/resources/allocator.hpp"

namespace gantry::agent {

struct PrepareContext {
  const sys::Host& host;
  const options::Options& options;
  const resources::AllocatorOptions& setting;
  const Log& log;
  metrics::AgentCounters& counters;
};

// What fails here is said, and does not keep the GPUs from being offered: they may be in use
// already.
void prepare(const model::Inventory& inventory, const PrepareContext& with);

}  // namespace gantry::agent
