// SPDX-License-Identifier: Apache-2.0
// The ids of GPU and compute instances as NVML reports them.
#pragma once

#include <optional>

namespace gantry::nvml {

constexpr unsigned kMaxInstances = 64;  // of a card, which has at most 8 times 8
constexpr unsigned kNoInstance = 0xFFFFFFFF;
constexpr unsigned kMaxInstanceId = 512;  // far above any card's

// nullopt for kNoInstance and for an id that no card has.
inline std::optional<int> instance_of(unsigned id) {
  if (id > kMaxInstanceId) return std::nullopt;
  return static_cast<int>(id);
}

}  // namespace gantry::nvml
