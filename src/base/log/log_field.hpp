// SPDX-License-Identifier: Apache-2.0
// A value in a line of the log.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace gantry {

// Refers to its value, which must live until the line is written.
class LogField {
 public:
  using Value = std::variant<std::monostate, std::string_view, bool, std::int64_t, std::uint64_t,
                             double, const std::vector<std::string>*, const Error*>;

  LogField(std::string_view key, std::string_view text) : key_(key), value_(text) {}
  LogField(std::string_view key, const std::string& text) : key_(key), value_(text) {}
  LogField(std::string_view key, const char* text) : key_(key), value_(std::string_view(text)) {}
  LogField(std::string_view key, const std::vector<std::string>& list) : key_(key), value_(&list) {}
  template <class T>
  requires std::is_arithmetic_v<T> LogField(std::string_view key, T number)
      : key_(key), value_(widen(number)) {}
  // Written as the cause under this key and, if there is one, the remedy under "remedy".
  LogField(std::string_view key, const Error& error) : key_(key), value_(&error) {}

  // Left out of the line if there is no value.
  template <class T>
  LogField(std::string_view key, const std::optional<T>& maybe) : key_(key) {
    if (maybe) value_ = LogField(key, *maybe).value_;
  }
  static LogField unless_empty(std::string_view key, std::string_view text) {
    return {key, text.empty() ? std::nullopt : std::optional(text)};
  }

  std::string_view key() const { return key_; }
  const Value& value() const { return value_; }

 private:
  template <class T>
  static constexpr auto widen(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      return number;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(number);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<std::int64_t>(number);
    } else {
      return static_cast<std::uint64_t>(number);
    }
  }

  std::string_view key_;
  Value value_;
};

using LogFields = std::initializer_list<LogField>;

}  // namespace gantry
