// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace gantry {

// FNV-1a. Use it to notice that a value changed; it does not protect against an attacker.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0);  // "ab","c" is not "a","bc"
  }
  template <std::integral Number>
  void add(Number number) {
    add(std::string_view(fmt::format_int(number).c_str()));
  }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace gantry
