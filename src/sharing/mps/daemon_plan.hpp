// SPDX-License-Identifier: Apache-2.0
// Which MPS daemons a node needs for what it offers, and the limits they are told: each client gets
// an equal part of a GPU's memory and of its threads. Pure.
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
  std::string uuid;
  int index = 0;
  std::uint64_t memory_mib = 0;  // of one client; 0: not known, no limit
  bool operator==(const GpuLimit&) const = default;
};

// One for each resource, as NVIDIA's daemon has it.
struct DaemonPlan {
  std::string resource;  // "nvidia.com/gpu"
  std::vector<GpuLimit> gpus;
  int thread_percentage = 100;  // of one client
  bool operator==(const DaemonPlan&) const = default;
};

// Invalid for more replicas than an MPS server has clients: 48, and 16 before compute capability
// 7.5.
Result<std::vector<DaemonPlan>> plan_daemons(const model::Inventory& machine,
                                             std::span<const model::AdvertisedResource> offered);

}  // namespace gantry::mps
