// SPDX-License-Identifier: Apache-2.0
// JSON as text that keeps its shape: parsed once into spans over the original bytes, asked by path,
// and changed by splicing (patch.hpp), so that whatever was not touched stays byte for byte:
// unknown fields, order, white space, the spelling of numbers.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::json {

constexpr std::size_t kSizeLimit = std::size_t{8} << 20;  // a config.json has 10 to 100 KiB
constexpr std::size_t kValueLimit = 500'000;
constexpr int kDepthLimit = 128;

enum class Kind : std::uint8_t { Absent, Null, Bool, Number, String, Array, Object };

std::string_view to_string(Kind kind);  // "an object", for messages

namespace detail {
struct Node {
  std::uint32_t begin = 0;  // the value's bytes, quotes and brackets included
  std::uint32_t end = 0;
  std::uint32_t key_begin = 0;  // the member's key with its quotes; 0 and 0 where there is none
  std::uint32_t key_end = 0;
  std::uint32_t first_child = 0;  // 0: none; the root is nobody's child
  std::uint32_t next = 0;         // sibling
  Kind kind = Kind::Absent;
};
}  // namespace detail

class Value;

namespace detail {
struct ParsedText {
  std::string text;
  std::vector<Node> nodes;  // the root first
};
}  // namespace detail

// One value of a document, or the lack of one: asking an absent value for a member gives an absent
// value, so that a path needs one check at its end. Lives no longer than its document.
class Value {
 public:
  class Iterator;

  Value() = default;
  Value(const detail::ParsedText& parsed, std::uint32_t index) : parsed_(&parsed), index_(index) {}

  Kind kind() const;
  explicit operator bool() const { return parsed_ != nullptr; }
  bool is(Kind wanted) const { return kind() == wanted; }

  Value operator[](std::string_view key) const;  // a member; absent when there is none
  Value element(std::size_t index) const;
  std::size_t size() const;  // members or elements
  Iterator begin() const;    // members or elements, in their order
  Iterator end() const;

  std::string key() const;                    // the member's name, unescaped
  std::optional<std::string> string() const;  // unescaped; nullopt when it is no string
  std::optional<bool> boolean() const;
  std::optional<std::uint64_t> u64() const;  // nullopt for signs, fractions, exponents
  std::optional<std::int64_t> i64() const;
  std::string_view raw() const;              // the bytes as they are
  std::vector<std::string> strings() const;  // of an array; what is no string is left out

  const detail::Node& node() const { return parsed_->nodes[index_]; }  // present values only

 private:
  const detail::ParsedText* parsed_ = nullptr;
  std::uint32_t index_ = 0;
};

class Value::Iterator {
 public:
  explicit Iterator(Value at) : at_(at) {}
  Value operator*() const { return at_; }
  Iterator& operator++();
  bool operator!=(const Iterator& other) const {
    return at_.parsed_ != other.at_.parsed_ || at_.index_ != other.at_.index_;
  }

 private:
  Value at_;
};

class Document {
 public:
  // Strict RFC 8259. Corrupt, with line and column, for anything else, for a key that an object has
  // twice (two readers would believe two different ones), and beyond the limits above.
  static Result<Document> parse(std::string text);

  Value root() const { return {*parsed_, 0}; }
  Value operator[](std::string_view key) const { return root()[key]; }
  const std::string& text() const { return parsed_->text; }

 private:
  explicit Document(std::unique_ptr<const detail::ParsedText> parsed)
      : parsed_(std::move(parsed)) {}
  std::unique_ptr<const detail::ParsedText>
      parsed_;  // stays where it is when the document is moved
};

// `text` between quotes, escaped. Bytes that are no ASCII go through as they are.
std::string quote(std::string_view text);

}  // namespace gantry::json
