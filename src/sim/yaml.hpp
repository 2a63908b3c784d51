// SPDX-License-Identifier: Apache-2.0
// YAML as a small tree that remembers where each value stood. Bounded: size, depth and number of
// values are limited before anything is built, and anchors, aliases and tags are refused.
#pragma once

#include "base/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

struct YamlEntry;

struct YamlValue {
  enum class Kind : std::uint8_t { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  std::string text;                // Scalar
  std::vector<YamlValue> items;    // List
  std::vector<YamlEntry> entries;  // Map, in file order
  std::shared_ptr<const std::string> file;
  int line = 0;

  const YamlValue* find(std::string_view key) const;
  YamlValue* find(std::string_view key);
  std::string where() const;  // "h200.yaml:12"

  // Out of line: entries hold a type that is complete only below.
  YamlValue();
  ~YamlValue();
  YamlValue(const YamlValue& other);
  YamlValue(YamlValue&& other) noexcept;
  YamlValue& operator=(const YamlValue& other);
  YamlValue& operator=(YamlValue&& other) noexcept;
};

struct YamlEntry {
  std::string key;
  YamlValue value;
};

inline constexpr std::size_t kYamlBytes = std::size_t{512} << 10;
inline constexpr std::size_t kYamlValues = 20'000;
inline constexpr std::size_t kYamlDepth = 16;

// `file` is what messages call the text. An empty text is an empty map.
Result<YamlValue> parse_yaml(std::string_view text, std::string_view file);

// Maps are merged key by key, everything else of `over` replaces what `base` has.
void merge(YamlValue& base, const YamlValue& over);

}  // namespace gantry::sim
