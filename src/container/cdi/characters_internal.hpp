// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gantry::cdi {

// ASCII, whatever the locale.
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace gantry::cdi
