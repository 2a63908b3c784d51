// SPDX-License-Identifier: Apache-2.0
// Keeps the files that containers start from up to date with the machine: the driver's directory,
// the inventory, and the CDI specifications that the answers name.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
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

// Logs failures and continues: the GPUs must still be offered, because they may be in use already.
void prepare(const model::Inventory& inventory, const PrepareContext& with);

}  // namespace gantry::agent
