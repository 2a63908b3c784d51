// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/strings_internal.hpp"

namespace gantry::json {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::Absent: return "nothing";
    case Kind::Null: return "null";
    case Kind::Bool: return "true or false";
    case Kind::Number: return "a number";
    case Kind::String: return "a string";
    case Kind::Array: return "an array";
    case Kind::Object: return "an object";
  }
  return "?";
}

Kind Value::kind() const {
  return parsed_ == nullptr ? Kind::Absent : node().kind;
}

Value Value::operator[](std::string_view key) const {
  if (!is(Kind::Object)) return {};
  const std::string_view text = parsed_->text;
  for (auto child = node().first_child; child != 0; child = parsed_->nodes[child].next) {
    const auto& member = parsed_->nodes[child];
    if (means(text.substr(member.key_begin, member.key_end - member.key_begin), key)) {
      return {*parsed_, child};
    }
  }
  return {};
}

Value Value::element(std::size_t index) const {
  if (!is(Kind::Array)) return {};
  for (const auto value : *this) {
    if (index-- == 0) return value;
  }
  return {};
}

std::size_t Value::size() const {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto value : *this) ++count;
  return count;
}

Value::Iterator Value::begin() const {
  if (!is(Kind::Object) && !is(Kind::Array)) return end();
  const auto first = node().first_child;
  return first == 0 ? end() : Iterator({*parsed_, first});
}

Value::Iterator Value::end() const {
  return Iterator({});
}

Value::Iterator& Value::Iterator::operator++() {
  const auto next = at_.node().next;
  at_ = next == 0 ? Value() : Value(*at_.parsed_, next);
  return *this;
}

std::string Value::key() const {
  if (parsed_ == nullptr || node().key_end == 0) return {};
  return unquote(
      std::string_view(parsed_->text).substr(node().key_begin, node().key_end - node().key_begin));
}

std::optional<std::string> Value::string() const {
  if (!is(Kind::String)) return std::nullopt;
  return unquote(raw());
}

std::string Value::string_or_empty() const {
  return string().value_or("");
}

std::optional<bool> Value::boolean() const {
  if (!is(Kind::Bool)) return std::nullopt;
  return raw() == "true";
}

std::optional<std::uint64_t> Value::u64() const {
  return is(Kind::Number) ? parse_u64(raw()) : std::nullopt;
}

std::optional<std::int64_t> Value::i64() const {
  return is(Kind::Number) ? parse_i64(raw()) : std::nullopt;
}

std::string_view Value::raw() const {
  if (parsed_ == nullptr) return {};
  return std::string_view(parsed_->text).substr(node().begin, node().end - node().begin);
}

std::vector<std::string> Value::strings() const {
  std::vector<std::string> result;
  if (!is(Kind::Array)) return result;
  for (const auto value : *this) {
    if (auto text = value.string()) result.push_back(*std::move(text));
  }
  return result;
}

}  // namespace gantry::json
