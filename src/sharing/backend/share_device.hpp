// SPDX-License-Identifier: Apache-2.0
// Named shares as CDI devices.
#pragma once

#include "base/sys/host.hpp"
#include "container/publish/share_spec.hpp"
#include "gpu/model/inventory.hpp"
#include "sharing/policy/share.hpp"

#include <string>
#include <vector>

namespace gantry::backend {

// What specifications of shares are made with: our libraries and our hook.
Result<publish::ShareSpecOptions> share_spec_options(const sys::Host& host);

std::string device_name(const std::string& share);  // "gantry.dev/share=blue"

// Named shares that the keeper does not keep, because the hardware or another daemon holds them:
// their specification is their record.
std::vector<policy::Share> declared_shares(const sys::Host& host);

// Exists where the keeper or a specification has a share of that name.
Status check_name_unused(const sys::Host& host, const std::string& name);

// The specification anew: what the keeper has, what is declared, and `added`. The driver's
// directory is prepared if need be.
Status write_share_devices(const sys::Host& host, const model::Inventory& machine,
                           const policy::Share* added = nullptr);

// One device less, and nothing else: also where the GPUs are gone.
Status remove_share_device(const sys::Host& host, const std::string& share);

}  // namespace gantry::backend
