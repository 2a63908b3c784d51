// SPDX-License-Identifier: Apache-2.0
// A container's share of one GPU. The scheduler chooses it, the node agent grants it.
#pragma once

#include "gpu/model/inventory.hpp"

#include <cstdint>

namespace gantry::model {

struct GpuShare {
  GpuUuid uuid;
  std::uint32_t index = 0;  // of the GPU on its node, for people and for the legacy annotations
  std::uint64_t mib = 0;
  std::uint32_t cores = 0;  // percent of its time; 0: no limit
  bool operator==(const GpuShare&) const = default;
};

}  // namespace gantry::model
