// SPDX-License-Identifier: Apache-2.0
// Plans the MPS daemons for a node's resources, and their limits: each client gets an equal part of
// a GPU's memory and threads. Pure.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::mps {

struct GpuLimit {
  model::GpuUuid uuid;
  std::uint64_t memory_mib = 0;  // of one client; 0: unknown, no limit
  bool operator==(const GpuLimit&) const = default;
};

// One daemon for each resource, as NVIDIA's daemon does it.
struct DaemonPlan {
  std::string resource;         // "nvidia.com/gpu"
  std::vector<GpuLimit> gpus;   // the daemon and its clients number them in this order
  int thread_percentage = 100;  // of one client
  bool operator==(const DaemonPlan&) const = default;
};

// Invalid for more replicas than an MPS server supports clients: 48, or 16 before compute
// capability 7.5.
Result<std::vector<DaemonPlan>> plan_daemons(const model::Inventory& machine,
                                             std::span<const model::AdvertisedResource> offered);

}  // namespace gantry::mps
