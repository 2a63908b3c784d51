// SPDX-License-Identifier: Apache-2.0
// Rules and sentences about single events and readings.
#pragma once

#include "gpu/health/xid.hpp"
#include "gpu/model/readings.hpp"

#include <optional>
#include <string>

namespace gantry::health {

XidMeaning event_meaning(const model::GpuEvent& event);
std::string describe(const model::GpuEvent& event, const XidMeaning& meaning);

// Returns the command that helps.
std::string remedy_for(XidClass needs, const model::GpuUuid& gpu);

struct RequestedAction {
  XidClass needs = XidClass::Reset;  // Watch: recover the IMEX domain
  std::string cause;
};
// The action that the driver asks for; nullopt if there is none or the driver cannot say.
std::optional<RequestedAction> requested_action(const model::GpuReading& reading);

// True if the hardware slows down because of heat. Software slowdown alone is normal and does not
// count.
bool is_hot(const model::GpuReading& reading);

// True if a counter that only grows became smaller: the card was reset.
bool counter_was_reset(const std::optional<std::uint64_t>& before,
                       const std::optional<std::uint64_t>& now);

}  // namespace gantry::health
