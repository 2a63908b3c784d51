// SPDX-License-Identifier: Apache-2.0
// CDI names: "nvidia.com/gpu=0" is vendor "nvidia.com", class "gpu", device "0".
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>

namespace gantry::cdi {

struct QualifiedName {
  std::string kind;  // "nvidia.com/gpu"
  std::string device;
  bool operator==(const QualifiedName&) const = default;
};

// Each error says what is wrong and which names are valid.
Status check_kind(std::string_view kind);
Status check_device_name(std::string_view name);
Result<QualifiedName> parse_qualified(std::string_view name);

bool is_qualified(std::string_view name);

}  // namespace gantry::cdi
