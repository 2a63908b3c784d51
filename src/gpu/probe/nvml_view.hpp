// SPDX-License-Identifier: Apache-2.0
// NVML's view of a machine: an Inventory in which only NVML's part is filled (driver versions, GPUs
// in NVML's order, links, notes). A GPU for which NVML gives no handle is included, marked lost,
// without UUID and address.
#pragma once

#include "gpu/driver/nvml.hpp"
#include "gpu/model/inventory.hpp"

namespace gantry::probe {

struct NvmlParts {
  bool load =
      false;  // power draw and utilisation: 5 of the 30 ms that a full query of an H200 takes
  bool processes = true;
  bool links = true;
};

// Initialises NVML and queries it. Never fails: if NVML does not start, driver.nvml_error says why.
// Does not shut NVML down. The calls may hang or crash, so run it in a child.
model::Inventory read_nvml_view(const driver::Nvml& nvml, const NvmlParts& parts);

}  // namespace gantry::probe
