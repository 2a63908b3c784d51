// SPDX-License-Identifier: Apache-2.0
// Which capabilities include others, and which files they need: one rule for the driver's lists,
// for containers and for the driver directory.
#pragma once

#include "gpu/model/inventory.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace gantry::model {

using CapabilityMask = std::uint32_t;

constexpr CapabilityMask mask_of(Capability capability) {
  return CapabilityMask{1} << static_cast<unsigned>(capability);
}

// Video includes compute, display includes graphics.
constexpr CapabilityMask expand_capabilities(std::span<const Capability> asked) {
  CapabilityMask mask = 0;
  for (const auto capability : asked) mask |= mask_of(capability);
  if ((mask & mask_of(Capability::Video)) != 0) mask |= mask_of(Capability::Compute);
  if ((mask & mask_of(Capability::Display)) != 0) mask |= mask_of(Capability::Graphics);
  return mask;
}

// A 32-bit file is needed only if compat32 and another capability that needs it are requested.
inline bool is_needed(const DriverFile& file, CapabilityMask closed) {
  if (file.is_32bit && (closed & mask_of(Capability::Compat32)) == 0) return false;
  return std::any_of(file.capabilities.begin(), file.capabilities.end(), [&](Capability c) {
    return c != Capability::Compat32 && (closed & mask_of(c)) != 0;
  });
}

}  // namespace gantry::model
