// SPDX-License-Identifier: Apache-2.0
// YAML as a small tree that remembers the line of each value. Size, depth and number of values are
// limited while parsing. Tags and aliases are rejected unless the caller allows them.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <cstdint>
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

// The values and the bytes of a copy count again.
enum class AliasPolicy : std::uint8_t { Refuse, Copy };
// Ignore: !!str makes a text of a value; every other tag changes nothing.
enum class TagPolicy : std::uint8_t { Refuse, Ignore };

struct Limits {
  std::size_t bytes = std::size_t{512} << 10;  // of the text; also of the copies that aliases make
  std::size_t values = 20'000;                 // of all documents together
  std::size_t depth = 16;
  AliasPolicy aliases = AliasPolicy::Refuse;
  TagPolicy tags = TagPolicy::Refuse;
  std::size_t documents = 256;  // parse_all only
};

// `file` names the text in messages. An empty text is an empty map. Only one document is allowed.
Result<Value> parse(std::string_view text, std::string_view file, const Limits& limits = {});
// All documents of a stream; an empty document is an empty map.
Result<std::vector<Value>> parse_all(std::string_view text, std::string_view file,
                                     const Limits& limits = {});

// Merges maps key by key; every other value of `over` replaces the value of `base`.
void merge(Value& base, const Value& over);

}  // namespace gantry::yaml
