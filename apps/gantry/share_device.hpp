// SPDX-License-Identifier: Apache-2.0
// Named shares as CDI devices.
#pragma once

#include "keeper/client.hpp"
#include "model/inventory.hpp"
#include "sys/host.hpp"

#include <string>

namespace gantry::cli {

std::string device_name(const std::string& share);  // "gantry.dev/share=blue"

// The specification anew from what the keeper has; the driver's directory is prepared if need be.
Status write_devices(keeper::Client& keeper, const sys::Host& host,
                     const model::Inventory& machine);

// One device less, and nothing else: also where the GPUs are gone.
Status withdraw_device(const sys::Host& host, const std::string& share);

}  // namespace gantry::cli
