// SPDX-License-Identifier: Apache-2.0
// How a reason of model::Health names the NVSwitch fabric. probe writes such reasons, health reads
// them.
#pragma once

#include <string_view>

namespace gantry::model {

inline constexpr std::string_view kNvSwitchFabric = "the NVSwitch fabric";

// A GPU has this reason only while its fabric is not ready.
inline bool is_about_fabric(std::string_view reason) {
  return reason.find(kNvSwitchFabric) != std::string_view::npos;
}

}  // namespace gantry::model
