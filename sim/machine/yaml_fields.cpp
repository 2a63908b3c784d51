// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "sim/machine/yaml_fields_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::sim {

YamlFields::YamlFields(const YamlValue& map, std::string_view what) : map_(map), what_(what) {
  if (map.kind != YamlValue::Kind::Map) fail(map, fmt::format("{} must be a map", what));
}

void YamlFields::fail(const YamlValue& at, std::string_view why) {
  if (!error_) error_ = Error(Errc::Corrupt, fmt::format("{}: {}", at.where(), why));
}

const YamlValue* YamlFields::child(std::string_view key) {
  known_.emplace(key);
  const YamlValue* value = map_.find(key);
  return value != nullptr && value->kind != YamlValue::Kind::Null ? value : nullptr;
}

const YamlValue* YamlFields::scalar(std::string_view key) {
  const YamlValue* value = child(key);
  if (value == nullptr || error_) return nullptr;
  if (value->kind != YamlValue::Kind::Scalar) {
    fail(*value, fmt::format("{} must be a single value", key));
    return nullptr;
  }
  return value;
}

const std::vector<YamlValue>& YamlFields::list(std::string_view key) {
  static const std::vector<YamlValue> none;
  const YamlValue* value = child(key);
  if (value == nullptr || error_) return none;
  if (value->kind != YamlValue::Kind::List) {
    fail(*value, fmt::format("{} must be a list", key));
    return none;
  }
  return value->items;
}

YamlFields& YamlFields::text(std::string_view key, std::string& out) {
  if (const auto* value = scalar(key)) out = value->text;
  return *this;
}

YamlFields& YamlFields::u64(std::string_view key, std::uint64_t& out) {
  if (const auto* value = scalar(key)) {
    if (auto number = parse_u64(value->text, 0)) {
      out = *number;
    } else {
      fail(*value, fmt::format("{} must be a number, not \"{}\"", key, value->text));
    }
  }
  return *this;
}

YamlFields& YamlFields::u32(std::string_view key, std::uint32_t& out, std::uint64_t most) {
  std::uint64_t wide = out;
  u64(key, wide);
  if (wide > most) {
    fail(*map_.find(key), fmt::format("{} must be at most {}", key, most));
  } else {
    out = static_cast<std::uint32_t>(wide);
  }
  return *this;
}

YamlFields& YamlFields::number(std::string_view key, std::optional<std::uint32_t>& out) {
  if (child(key) != nullptr) {
    std::uint32_t value = 0;
    u32(key, value);
    out = value;
  }
  return *this;
}

YamlFields& YamlFields::i32(std::string_view key, std::int32_t& out) {
  const auto* value = scalar(key);
  if (value == nullptr) return *this;
  if (value->text == "N/A") {
    out = kUnset;
    return *this;
  }
  const auto number = parse_i64(value->text);
  if (number && *number > INT32_MIN && *number <= INT32_MAX) {
    out = static_cast<std::int32_t>(*number);
  } else {
    fail(*value, fmt::format("{} must be a number or N/A, not \"{}\"", key, value->text));
  }
  return *this;
}

YamlFields& YamlFields::flag(std::string_view key, bool& out) {
  if (const auto* value = scalar(key)) {
    if (value->text != "true" && value->text != "false") {
      fail(*value, fmt::format("{} must be true or false, not \"{}\"", key, value->text));
    }
    out = value->text == "true";
  }
  return *this;
}

YamlFields& YamlFields::mode(std::string_view key, std::uint32_t& out) {
  if (const auto* value = scalar(key)) {
    const auto bits = parse_u64(value->text, 8);
    if (bits && *bits <= 07777) {
      out = static_cast<std::uint32_t>(*bits);
    } else {
      fail(*value, fmt::format("{} must be an octal mode such as 0660", key));
    }
  }
  return *this;
}

YamlFields& YamlFields::address(std::string_view key, std::optional<model::PciAddress>& out) {
  if (const auto* value = scalar(key)) {
    out = model::PciAddress::parse(value->text);
    if (!out) {
      fail(*value, fmt::format("{} must be a PCI address such as 0000:3b:00.0, not \"{}\"", key,
                               value->text));
    }
  }
  return *this;
}

YamlFields& YamlFields::address(std::string_view key, model::PciAddress& out) {
  std::optional<model::PciAddress> found;
  address(key, found);
  if (found) out = *found;
  return *this;
}

YamlFields& YamlFields::texts(std::string_view key, std::vector<std::string>& out) {
  if (child(key) != nullptr) out.clear();
  for (const auto& item : list(key)) {
    if (item.kind != YamlValue::Kind::Scalar)
      fail(item, fmt::format("{} must be a list of strings", key));
    out.push_back(item.text);
  }
  return *this;
}

YamlFields& YamlFields::numbers(std::string_view key, std::vector<std::uint32_t>& out) {
  if (child(key) != nullptr) out.clear();
  for (const auto& item : list(key)) {
    const auto number = parse_u64(item.text, 0);
    if (!number || *number > UINT32_MAX) {
      fail(item, fmt::format("{} must be a list of numbers", key));
      break;
    }
    out.push_back(static_cast<std::uint32_t>(*number));
  }
  return *this;
}

YamlFields& YamlFields::pairs(std::string_view key, KeyValues& out) {
  const YamlValue* value = child(key);
  if (value == nullptr) return *this;
  if (value->kind != YamlValue::Kind::Map) {
    fail(*value, fmt::format("{} must be a map", key));
    return *this;
  }
  out.clear();
  for (const auto& [name, item] : value->entries) {
    if (item.kind == YamlValue::Kind::List || item.kind == YamlValue::Kind::Map) {
      fail(item, fmt::format("{}: {} must be a single value", key, name));
    }
    out.emplace_back(name, item.text);
  }
  return *this;
}

Status YamlFields::take(Status status) {
  if (!status.ok() && !error_) error_ = std::move(status).error();
  return {};
}

Status YamlFields::finish() {
  if (error_) return *error_;
  for (const auto& [key, value] : map_.entries) {
    if (known_.find(key) == known_.end()) {
      return Error(Errc::Corrupt, fmt::format("{}: {} has no key \"{}\"; it has {}", value.where(),
                                              what_, key, fmt::join(known_, ", ")));
    }
  }
  return {};
}

}  // namespace gantry::sim
