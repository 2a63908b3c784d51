// SPDX-License-Identifier: Apache-2.0
// The tree that the YAML and JSON printers print. Maps keep the order in which keys were added;
// empty values are left out.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::cdi {

struct OutputTree {
  enum class Kind : std::uint8_t { Text, Literal, List, Map };  // Literal: numbers, true, {}
  Kind kind = Kind::Map;
  std::string text;
  std::vector<OutputTree> children;
  std::string key;  // in its map; "" in a list

  static OutputTree of(const std::string& text) { return {Kind::Text, text, {}, ""}; }
  static OutputTree list() { return {Kind::List, "", {}, ""}; }

  OutputTree& always(std::string_view name, OutputTree value) {
    value.key = name;
    children.push_back(std::move(value));
    return *this;
  }
  OutputTree& put(std::string_view name, OutputTree value) {
    return value.children.empty() ? *this : always(name, std::move(value));
  }
  OutputTree& put(std::string_view name, const std::string& value) {
    return value.empty() ? *this : always(name, of(value));
  }
  template <class Number>
  OutputTree& put(std::string_view name, const std::optional<Number>& value) {
    return value ? always(name, {Kind::Literal, fmt::to_string(*value), {}, ""}) : *this;
  }
  OutputTree& put(std::string_view name, const std::vector<std::string>& values) {
    auto items = list();
    for (const auto& value : values) items.always("", of(value));
    return put(name, std::move(items));
  }
};

std::string print_yaml(const OutputTree& tree);
std::string print_json(const OutputTree& tree);

}  // namespace gantry::cdi
