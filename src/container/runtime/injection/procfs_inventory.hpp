// SPDX-License-Identifier: Apache-2.0
// A machine without its inventory: whole GPUs as the driver's procfs lists them, and the driver's
// files as the prepared directory has them. Enough to start a container with; not for MIG.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/driver_dir/current.hpp"
#include "gpu/model/inventory.hpp"

namespace gantry::runtime {

// NotFound when the driver is not loaded. GPUs are in PCI order; MIG is Unknown, and a GPU with
// instances is refused by whoever asks for it (Mig::current Enabled, no instances known).
Result<model::Inventory> procfs_inventory(const sys::Host& host,
                                          const driver_dir::CurrentDriver& prepared);

}  // namespace gantry::runtime
