// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/cdi/characters_internal.hpp"
#include "container/cdi/field_reader_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace gantry::cdi {
namespace {

using Kind = yaml::Value::Kind;

// Plain words that YAML 1.1 readers read as true and false, and other readers as text.
bool is_yaml_boolean(std::string_view text) {
  constexpr std::array<std::string_view, 8> kWords{"yes", "no", "on",   "off",
                                                   "y",   "n",  "true", "false"};
  return std::find(kWords.begin(), kWords.end(), to_lower(text)) != kWords.end();
}

// 010, 1e3, 0x1f, 1_000, .5: some readers parse these as numbers and change them before they become
// text.
bool is_ambiguous_number(std::string_view text) {
  if (parse_u64(text)) return text.size() > 1 && text.front() == '0';
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  for (const std::string_view base : {"0x", "0o", "0b"}) {
    if (text.starts_with(base) && text.size() > 2) {
      return text.find_first_not_of("0123456789abcdefABCDEF_", 2) == std::string_view::npos;
    }
  }
  if (text.empty() || !(is_digit(text.front()) || text.front() == '.') || !is_digit(text.back()))
    return false;
  return text.find_first_not_of("0123456789_.eE+") == std::string_view::npos &&
         std::count(text.begin(), text.end(), '.') < 2;
}

// Parses integers like YAML 1.1: 0660 and 0o660 are octal.
std::optional<std::int64_t> integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::optional<std::uint64_t> number;
  if (text.starts_with("0x")) {
    number = parse_u64(text.substr(2), 16);
  } else if (text.starts_with("0o")) {
    number = parse_u64(text.substr(2), 8);
  } else if (text.size() > 1 && text.starts_with('0')) {
    number = parse_u64(text, 8);
  } else {
    number = parse_u64(text);
  }
  if (!number || *number > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return std::nullopt;
  const auto value = static_cast<std::int64_t>(*number);
  return negative ? -value : value;
}

}  // namespace

FieldReader::FieldReader(const yaml::Value& map, std::string_view what, std::optional<Error>& error)
    : map_(map), what_(what), error_(error) {
  if (map.kind != Kind::Map) fail(map, fmt::format("{} must be a map", what));
}

void FieldReader::fail(const yaml::Value& at, std::string_view why) {
  if (!error_) error_ = Error(Errc::Corrupt, fmt::format("{}: {}", at.where(), why));
}

const yaml::Value* FieldReader::child(std::string_view key) {
  known_.push_back(key);
  if (error_) return nullptr;
  const auto* value = map_.find(key);
  return value != nullptr && value->kind != Kind::Null ? value : nullptr;
}

const std::vector<yaml::Value>& FieldReader::items(std::string_view key) {
  static const std::vector<yaml::Value> none;
  const auto* value = child(key);
  if (value == nullptr) return none;
  if (value->kind != Kind::List) fail(*value, fmt::format("{} must be a list", key));
  return value->items;
}

std::optional<std::string> FieldReader::read_text(const yaml::Value& value, std::string_view key) {
  if (value.kind != Kind::Scalar) {
    fail(value, fmt::format("{} must be a string", key));
  } else if (!value.quoted && (is_yaml_boolean(value.text) || is_ambiguous_number(value.text))) {
    fail(value, fmt::format("{}: put {} in quotes, because YAML readers disagree about it", key,
                            value.text));
  } else {
    return value.text;
  }
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::read_number(const yaml::Value& value, std::string_view key,
                                                     std::int64_t least, std::int64_t most) {
  const auto number = value.kind == Kind::Scalar && !value.quoted ? integer(value.text)
                                                                  : std::optional<std::int64_t>();
  if (number && *number >= least && *number <= most) return number;
  fail(value, fmt::format("{} must be a number from {} to {}", key, least, most));
  return std::nullopt;
}

FieldReader& FieldReader::text(std::string_view key, std::string& out) {
  if (const auto* value = child(key)) out = read_text(*value, key).value_or("");
  return *this;
}

FieldReader& FieldReader::texts(std::string_view key, std::vector<std::string>& out) {
  for (const auto& item : items(key)) out.push_back(read_text(item, key).value_or(""));
  return *this;
}

FieldReader& FieldReader::flag(std::string_view key, bool& out) {
  if (const auto* value = child(key)) {
    if (value->quoted || (value->text != "true" && value->text != "false")) {
      fail(*value, fmt::format("{} must be true or false", key));
    }
    out = value->text == "true";
  }
  return *this;
}

FieldReader& FieldReader::number(std::string_view key, std::optional<std::int64_t>& out) {
  if (const auto* value = child(key)) {
    // The range of device numbers and timeouts; OCI uses -1 for none.
    out = read_number(*value, key, -1, UINT32_MAX);
  }
  return *this;
}

FieldReader& FieldReader::number(std::string_view key, std::optional<std::uint32_t>& out) {
  if (const auto* value = child(key)) {
    if (const auto number = read_number(*value, key, 0, UINT32_MAX))
      out = static_cast<std::uint32_t>(*number);
  }
  return *this;
}

FieldReader& FieldReader::numbers(std::string_view key, std::vector<std::uint32_t>& out) {
  for (const auto& item : items(key)) {
    if (const auto number = read_number(item, key, 0, UINT32_MAX))
      out.push_back(static_cast<std::uint32_t>(*number));
  }
  return *this;
}

FieldReader& FieldReader::text_map(std::string_view key, std::map<std::string, std::string>& out) {
  const auto* value = child(key);
  if (value == nullptr) return *this;
  if (value->kind != Kind::Map) fail(*value, fmt::format("{} must be a map of strings", key));
  for (const auto& [name, item] : value->entries) out[name] = read_text(item, name).value_or("");
  return *this;
}

void FieldReader::finish() {
  if (error_) return;
  for (const auto& [key, value] : map_.entries) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    fail(value,
         fmt::format("{} has no key \"{}\"; its keys are {}", what_, key, fmt::join(known_, ", ")));
  }
}

}  // namespace gantry::cdi
