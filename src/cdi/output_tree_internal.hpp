// SPDX-License-Identifier: Apache-2.0
// What both printers print: maps keep the order in which keys were added, empty values are left
// out.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
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

  OutputTree& always(std::string name, OutputTree value) {
    value.key = std::move(name);
    children.push_back(std::move(value));
    return *this;
  }
  OutputTree& put(std::string name, OutputTree value) {
    return value.children.empty() ? *this : always(std::move(name), std::move(value));
  }
  OutputTree& put(std::string name, const std::string& value) {
    return value.empty() ? *this : always(std::move(name), of(value));
  }
  template <class Number>
  OutputTree& put(std::string name, const std::optional<Number>& value) {
    return value ? always(std::move(name), {Kind::Literal, fmt::to_string(*value), {}, ""}) : *this;
  }
  OutputTree& put(std::string name, const std::vector<std::string>& values) {
    auto items = list();
    for (const auto& value : values) items.always("", of(value));
    return put(std::move(name), std::move(items));
  }
};

std::string print_yaml(const OutputTree& tree);
std::string print_json(const OutputTree& tree);

}  // namespace gantry::cdi
