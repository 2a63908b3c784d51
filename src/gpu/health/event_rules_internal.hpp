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

// A command.
std::string remedy_for(XidClass needs, const model::GpuUuid& gpu);

struct RequestedAction {
  XidClass needs = XidClass::Reset;  // Watch: recover the IMEX domain
  std::string cause;
};
// What the driver wants; nullopt when nothing, or when it cannot say.
std::optional<RequestedAction> requested_action(const model::GpuReading& reading);

// The hardware itself slows down because of heat: software slowdown alone is everyday life.
bool is_hot(const model::GpuReading& reading);

// Counters that only grow start again when the card is reset.
bool counter_was_reset(const std::optional<std::uint64_t>& before,
                       const std::optional<std::uint64_t>& now);

}  // namespace gantry::health
