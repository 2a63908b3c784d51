// SPDX-License-Identifier: Apache-2.0
// YAML as a small tree that remembers the line of each value. Size, depth and number of values are
// limited while parsing. Tags are rejected, and aliases too unless the caller allows them.
#pragma once

#include "base/core/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::yaml {

struct MapEntry;

struct Value {
  enum class Kind : std::uint8_t { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  bool quoted = false;            // Scalar: written in quotes, so it is always text
  std::string text;               // Scalar
  std::vector<Value> items;       // List
  std::vector<MapEntry> entries;  // Map, in file order
  std::shared_ptr<const std::string> file;
  int line = 0;

  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  std::string where() const;  // "h200.yaml:12"

  // Out of line: entries hold a type that is complete only below.
  Value();
  ~Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
};

struct MapEntry {
  std::string key;
  Value value;
};

enum class AliasPolicy : std::uint8_t { Refuse, Copy };  // the values of a copy count again

struct Limits {
  std::size_t bytes = std::size_t{512} << 10;
  std::size_t values = 20'000;
  std::size_t depth = 16;
  AliasPolicy aliases = AliasPolicy::Refuse;
};

// `file` names the text in messages. An empty text is an empty map. Only one document is allowed.
Result<Value> parse(std::string_view text, std::string_view file, const Limits& limits = {});

// Merges maps key by key; every other value of `over` replaces the value of `base`.
void merge(Value& base, const Value& over);

}  // namespace gantry::yaml
