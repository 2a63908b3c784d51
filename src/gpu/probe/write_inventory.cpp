// SPDX-License-Identifier: Apache-2.0
#include "base/sys/replace_file.hpp"
#include "base/sys/trusted.hpp"
#include "gpu/model/inventory_json.hpp"
#include "gpu/probe/snapshot.hpp"

#include <algorithm>

namespace gantry::probe {
namespace {

// True if there is really nothing to list: GPUs exist, and every one is bound to vfio-pci or
// another driver.
bool held_by_others(const model::Inventory& inventory) {
  bool any = false;
  for (const auto& function : inventory.functions) {
    if (!function.is_gpu()) continue;
    if (function.driver.empty() || function.driver == "nvidia") return false;
    any = true;
  }
  return any;
}

bool has_gpus(const sys::Host& host) {
  const auto text = sys::read_trusted(host, kInventoryPath, model::kInventoryJsonLimit);
  if (!text.ok()) return false;
  const auto old = model::inventory_from_json(*text);
  return old.ok() && !old->gpus.empty();
}

}  // namespace

Result<WriteResult> write_inventory(const sys::Host& host, const model::Inventory& inventory) {
  if (inventory.gpus.empty() && !held_by_others(inventory) && has_gpus(host))
    return WriteResult::Kept;
  GANTRY_CHECK(sys::replace_file(host.outside(kInventoryPath), model::to_json(inventory), 0644,
                                 sys::Durability::Volatile)
                   .in("writing the inventory"));
  return WriteResult::Replaced;
}

}  // namespace gantry::probe
