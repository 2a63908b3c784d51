// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/text.hpp"

namespace gantry::cdi {

// ASCII, whatever the locale.
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace gantry::cdi
