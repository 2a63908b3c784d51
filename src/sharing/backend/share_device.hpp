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

// The files that a specification of shares refers to: the fence libraries and the hook.
Result<publish::ShareSpecOptions> share_spec_options(const sys::Host& host);

std::string device_name(const std::string& share);  // "gantry.dev/share=blue"

// Named shares that the share daemon does not manage, because the hardware or another daemon
// enforces them. Their CDI specification is their only record.
std::vector<policy::Share> declared_shares(const sys::Host& host);

// Exists if the share daemon or a specification has a share with this name.
Status check_name_unused(const sys::Host& host, const std::string& name);

// Rewrites the specification with the share daemon's shares, the declared shares and `added`.
// Prepares the driver's directory if necessary.
Status write_share_devices(const sys::Host& host, const model::Inventory& machine,
                           const policy::Share* added = nullptr);

// Removes one device and changes nothing else. Works even if the GPUs are gone.
Status remove_share_device(const sys::Host& host, const std::string& share);

}  // namespace gantry::backend
