// SPDX-License-Identifier: Apache-2.0
// BARs and memory of common cards, for files of a machine that we do not run on: an ESXi host, or a
// host that is not installed yet.
#pragma once

#include "base/core/result.hpp"
#include "vm/hypervisor/guest_gpu.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::hypervisor {

std::optional<GuestGpu> card_by_device_id(std::uint16_t device);

// "h200", "a100-80", in any case. NotFound, with the known names, otherwise.
Result<GuestGpu> card_by_name(std::string_view name);

std::string known_card_names();  // "a100-40, a100-80, ..."

}  // namespace gantry::hypervisor
