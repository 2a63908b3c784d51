// SPDX-License-Identifier: Apache-2.0
#include "gpu/model/driver_version.hpp"

#include "base/core/text.hpp"

#include <algorithm>

namespace gantry::model {

bool is_driver_version(std::string_view text) {
  if (text.size() > 32) return false;
  const auto parts = split(text, '.');
  if (parts.size() < 2 || parts.size() > 4) return false;
  if (!std::all_of(parts.begin(), parts.end(), all_digits)) return false;
  return parts[0].size() >= 3 && parts[0].size() <= 4 && parts[0][0] != '0';
}

}  // namespace gantry::model
