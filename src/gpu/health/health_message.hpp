// SPDX-License-Identifier: Apache-2.0
// The message of the node condition GPUsHealthy. A condition has only a text, so its writer (the
// agent) and its reader (`gantry why`) share this file:
//
//   GPU-1, GPU-2: cause (remedy: command); GPU-3: cause
//   all 8 GPUs: cause (remedy: command)
#pragma once

#include "gpu/model/advertised.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::health {

// " (remedy: command)"; "" without a remedy.
std::string format_remedy(std::string_view remedy);

// Describes the devices that are not usable; "" if there are none. An event that affects several
// GPUs at once (the driver was unloaded) is described once.
std::string to_message(const std::vector<model::DeviceHealth>& health);

struct DeviceProblem {
  std::string text;    // the part of the message about the device, with its remedy
  std::string remedy;  // "" if the message has none
};

// nullopt if the message does not mention the device. A message that was cut at its end is read as
// far as it goes.
std::optional<DeviceProblem> find_problem(std::string_view message, std::string_view id);

}  // namespace gantry::health
