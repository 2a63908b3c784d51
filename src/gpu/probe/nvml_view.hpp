// SPDX-License-Identifier: Apache-2.0
// What NVML says about a machine. The value is an Inventory in which only NVML's part is filled:
// driver versions, GPUs in NVML's order, links, notes. A GPU whose handle could not be had is
// there, marked lost, with neither UUID nor address.
#pragma once

#include "gpu/driver/nvml.hpp"
#include "gpu/model/inventory.hpp"

namespace gantry::probe {

struct NvmlParts {
  bool load =
      false;  // power draw and utilisation: 5 of the 30 ms that an H200 takes for everything
  bool processes = true;
  bool links = true;
};

// Initialises NVML and asks. Never fails: when NVML does not start, driver.nvml_error says why.
// Does not shut NVML down. The calls may hang or crash: run it in a child.
model::Inventory read_nvml_view(const driver::Nvml& nvml, const NvmlParts& parts);

}  // namespace gantry::probe
