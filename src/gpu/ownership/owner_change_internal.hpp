// SPDX-License-Identifier: Apache-2.0
// The moments of a change at which a test kills the process.
#pragma once

#include "gpu/ownership/owner_change.hpp"

#include <functional>

namespace gantry::ownership {

enum class ChangeStep : std::uint8_t { Locked, Adopted, IntentWritten, Acted, Settled };
using AtStep = std::function<void(ChangeStep step)>;

Status change_owner(const sys::Host& host, const OwnerChange& change, const GpuUsage& usage,
                    const std::function<Status()>& act, const SettleChange& settle,
                    const AtStep& at);

}  // namespace gantry::ownership
