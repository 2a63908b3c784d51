// SPDX-License-Identifier: Apache-2.0
// The table of config.toml's keys: name, field of Settings, allowed values, meaning. Reading,
// printing, setting and documentation all use it.
#pragma once

#include "container/config/settings.hpp"

#include <span>
#include <variant>

namespace gantry::config {

template <class T>
using Field = T& (*)(Settings&);

struct Key {
  std::string_view name;  // dotted: "nvidia-container-cli.root"
  std::variant<Field<bool>, Field<std::string>, Field<std::vector<std::string>>,
               Field<std::int64_t>>
      field;
  std::string_view meaning;
  std::string_view words{};        // allowed values, separated by '|'; "" allows all
  std::string_view environment{};  // the variable that overrides it; "": none
  std::string_view sample{};       // TOML for a comment if the key is not set, or kOmitted
};

constexpr std::string_view kOmitted = "-";  // the key is not in the default file

std::span<const Key> keys();
const Key* find_key(std::string_view name);

// "nvidia-container-cli" for "nvidia-container-cli.root"; "" for a key outside of all tables.
std::string_view table_of(std::string_view name);
std::string_view leaf_name(std::string_view name);

// The value as TOML: true, "text", ["a", "b"], 20.
std::string to_toml(const Key& key, const Settings& settings);

// Parses a value of a command line or a variable: true/false, text, a,b or a:b, 20. Invalid if the
// value has the wrong form or is not allowed.
Status set_value(const Key& key, std::string_view words, Settings& settings);

// Invalid, with the allowed values, if the key's value is not one of them.
Status check_allowed_values(const Key& key, const Settings& settings);

}  // namespace gantry::config
