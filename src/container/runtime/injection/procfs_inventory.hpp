// SPDX-License-Identifier: Apache-2.0
// A replacement for a missing inventory: whole GPUs from the driver's procfs, and the driver's
// files from the prepared directory. Enough to start a container; not for MIG.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/driver_dir/current.hpp"
#include "gpu/model/inventory.hpp"

namespace gantry::runtime {

// NotFound if the driver is not loaded. The GPUs and their order are those of the probe without
// NVML: excluded ones are left out, and a GPU without a minor number stays, so that it keeps the
// indices of the others right. MIG is Unknown; a GPU with instances has Mig::current Enabled and no
// known instances, so requests for it fail.
Result<model::Inventory> procfs_inventory(const sys::Host& host,
                                          const driver_dir::CurrentDriver& prepared);

}  // namespace gantry::runtime
