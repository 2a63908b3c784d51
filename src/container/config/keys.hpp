// SPDX-License-Identifier: Apache-2.0
// The one table of config.toml's keys: name, place in Settings, allowed words, meaning. Reading,
// printing, setting and documentation all go through it.
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
  std::string_view words{};        // allowed values, split by '|'; "" allows all
  std::string_view environment{};  // the variable that overrides it, "" for none
  std::string_view sample{};       // TOML shown in a comment while the key is not set, or kOmitted
};

constexpr std::string_view kOmitted = "-";  // not in the default file at all

std::span<const Key> keys();
const Key* find_key(std::string_view name);

// "nvidia-container-cli" of "nvidia-container-cli.root"; the part without a table is "".
std::string_view table_of(std::string_view name);
std::string_view leaf_name(std::string_view name);

// The value as TOML: true, "text", ["a", "b"], 20.
std::string to_toml(const Key& key, const Settings& settings);

// From the words of a command line or a variable: true/false, text, a,b or a:b, 20. Invalid when
// it is none of those or not allowed.
Status set_value(const Key& key, std::string_view words, Settings& settings);

// Invalid, naming what is allowed, when the key's value is none of its words.
Status check_allowed_values(const Key& key, const Settings& settings);

}  // namespace gantry::config
