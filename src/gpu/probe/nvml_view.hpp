// SPDX-License-Identifier: Apache-2.0
// NVML's view of a machine: an Inventory in which only NVML's part is filled (driver versions, GPUs
// in NVML's order, links, notes). A GPU for which NVML gives no handle is included, marked lost,
// without UUID and address.
#pragma once

#include "base/core/result.hpp"
#include "gpu/abi/nvml.h"
#include "gpu/model/inventory.hpp"
#include "gpu/model/inventory_json.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace gantry::probe {

struct NvmlParts {
  bool load =
      false;  // power draw and utilisation: 5 of the 30 ms that a full query of an H200 takes
  bool processes = true;
  bool links = true;
};

// "load,links": an argument of gantry-nvml. A word that is not known is left out.
std::string to_argument(const NvmlParts& parts);
NvmlParts parts_from_argument(std::string_view text);

// What NVML answered. If it did not answer, driver.nvml_error says why to people, and `failure` to
// code: NVML's own code, or the one that fits best if NVML could not be loaded or asked.
struct NvmlView {
  model::Inventory inventory;
  nvmlReturn_t failure = NVML_SUCCESS;
};

// For the pipe or socket between gantry-nvml, which asks NVML, and the program that started it.
std::string to_bytes(const NvmlView& view);
Result<NvmlView> nvml_view_from(std::string_view bytes);
inline constexpr std::size_t kNvmlViewLimit = model::kInventoryJsonLimit + 16;

}  // namespace gantry::probe
