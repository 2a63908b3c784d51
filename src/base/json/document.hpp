// SPDX-License-Identifier: Apache-2.0
// JSON as text that keeps its layout. It is parsed once into spans over the original bytes, read by
// path, and changed by splicing (patch.hpp). So everything that is not changed keeps its bytes:
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
  std::uint32_t key_begin = 0;  // the member's key with its quotes; 0 and 0 if it has none
  std::uint32_t key_end = 0;
  std::uint32_t first_child = 0;  // 0: none; the root is never a child
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

// One value of a document, or an absent value. A member of an absent value is absent too, so a path
// needs only one check at its end. Must not outlive its document.
class Value {
 public:
  class Iterator;

  Value() = default;
  Value(const detail::ParsedText& parsed, std::uint32_t index) : parsed_(&parsed), index_(index) {}

  Kind kind() const;
  explicit operator bool() const { return parsed_ != nullptr; }
  bool is(Kind wanted) const { return kind() == wanted; }

  Value operator[](std::string_view key) const;  // a member; absent if it does not exist
  Value element(std::size_t index) const;
  std::size_t size() const;  // members or elements
  Iterator begin() const;    // members or elements, in their order
  Iterator end() const;

  std::string key() const;                    // the member's name, unescaped
  std::optional<std::string> string() const;  // unescaped; nullopt if it is not a string
  std::string string_or_empty() const;        // unescaped; "" if it is not a string
  std::optional<bool> boolean() const;
  std::optional<std::uint64_t> u64() const;  // nullopt for signs, fractions, exponents
  std::optional<std::int64_t> i64() const;
  std::string_view raw() const;              // the bytes as written
  std::vector<std::string> strings() const;  // the strings of an array; other elements are skipped

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

// The bytes that a text may have.
enum class Encoding : std::uint8_t {
  Utf8,  // as RFC 8259 demands; strings that are read can be written again unchanged
  Any    // for files of other programs, which accept and keep such bytes: config.json
};

class Document {
 public:
  // Accepts RFC 8259 only. Returns Corrupt, with line and column, for anything else, for a key that
  // appears twice in one object (readers would disagree about its value), and for a text that is
  // nested too deep. TooLarge beyond kSizeLimit and kValueLimit.
  static Result<Document> parse(std::string text, Encoding encoding = Encoding::Utf8);

  Value root() const { return {*parsed_, 0}; }
  Value operator[](std::string_view key) const { return root()[key]; }
  const std::string& text() const { return parsed_->text; }

 private:
  explicit Document(std::unique_ptr<const detail::ParsedText> parsed)
      : parsed_(std::move(parsed)) {}
  std::unique_ptr<const detail::ParsedText>
      parsed_;  // keeps its address when the document is moved
};

// `text` in quotes, escaped. Non-ASCII bytes are copied unchanged.
std::string quote(std::string_view text);

}  // namespace gantry::json
