// SPDX-License-Identifier: Apache-2.0
#include "base/core/hash.hpp"
#include "gpu/probe/snapshot.hpp"

namespace gantry::probe {

std::string generation_of(const model::Inventory& inventory) {
  Hash hash;
  hash.add(inventory.boot_id);
  hash.add(inventory.driver.version);
  for (const auto& gpu : inventory.gpus) {
    hash.add(gpu.uuid.text);
    hash.add(gpu.pci.sysfs());
    hash.add(static_cast<int>(gpu.mig.current));
    for (const auto& mig : gpu.mig.instances) {
      hash.add(mig.uuid.text);
      hash.add(mig.gpu_instance);
      hash.add(mig.compute_instance);
      hash.add(mig.profile);
      hash.add(mig.placement_start);
    }
  }
  return hash.text();
}

}  // namespace gantry::probe
