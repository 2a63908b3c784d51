// SPDX-License-Identifier: Apache-2.0
// The configuration file: single options from the table, the rest in options_sharing.cpp. An
// unknown key is an error with its line, because a misspelled key must not be silently ignored.
#include "node/options/options_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::options {
namespace {

// The keys that may follow a path in the file.
std::vector<std::string> known_below(std::string_view place) {
  std::vector<std::string> known;
  if (place.empty()) known = {"version", "resources", "sharing"};
  if (place == "gantry") known = {"gpus"};
  const auto start = place.empty() ? std::string() : fmt::format("{}.", place);
  for (const auto& option : option_table()) {
    if (option.key.empty() || !option.key.starts_with(start)) continue;
    auto rest = option.key.substr(start.size());
    rest = rest.substr(0, rest.find('.'));
    if (std::find(known.begin(), known.end(), rest) == known.end()) known.emplace_back(rest);
  }
  return known;
}

const Option* find_key(std::string_view key) {
  for (const auto& option : option_table()) {
    if (!option.key.empty() && option.key == key) return &option;
  }
  return nullptr;
}

Status set_from(const Option& option, const yaml::Value& value, Options& options) {
  switch (value.kind) {
    case yaml::Value::Kind::Null: return {};  // an empty value means the default
    case yaml::Value::Kind::Scalar: return set_value(option, value.text, options);
    case yaml::Value::Kind::Map: return Error(Errc::Invalid, "expected a value, found a map");
    case yaml::Value::Kind::List: break;
  }
  std::vector<std::string> items;
  for (const auto& item : value.items) {
    if (item.kind != yaml::Value::Kind::Scalar)
      return Error(Errc::Invalid, "not a list of single values");
    items.push_back(item.text);
  }
  return set_list(option, items, options);
}

Status read_map(const yaml::Value& map, const std::string& place, Options& options);

Status read_entry(const yaml::MapEntry& entry, const std::string& place, Options& options) {
  const auto key = place.empty() ? entry.key : fmt::format("{}.{}", place, entry.key);
  const auto& value = entry.value;
  if (key == "version") return {};  // already checked
  if (key == "resources") return read_name_rules(value, options);
  if (key == "sharing") return read_sharing(value, options);
  if (key == "gantry.gpus") return read_gpu_rules(value, options);
  if (const auto* option = find_key(key)) {
    return set_from(*option, value, options).in(fmt::format("{}: {}", value.where(), key));
  }
  if (!known_below(key).empty()) return read_map(value, key, options);
  return error_at(
      value, fmt::format("unknown key `{}`{}{}", entry.key, place.empty() ? "" : " in " + place,
                         did_you_mean(entry.key, known_below(place))));
}

Status read_map(const yaml::Value& map, const std::string& place, Options& options) {
  if (map.kind == yaml::Value::Kind::Null) return {};
  if (map.kind != yaml::Value::Kind::Map) {
    return error_at(map, fmt::format("{} is not a map", place.empty() ? "the file" : place));
  }
  for (const auto& entry : map.entries) GANTRY_CHECK(read_entry(entry, place, options));
  return {};
}

Status check_version(const yaml::Value& file) {
  const auto* version = file.find("version");
  if (version == nullptr) {
    return Error(Errc::Invalid,
                 fmt::format("{}: `version: v1` is missing", file.file ? *file.file : "the file"));
  }
  if (version->text != "v1") {
    return error_at(*version,
                    fmt::format("version `{}` is not supported; write v1", version->text));
  }
  return {};
}

}  // namespace

Error error_at(const yaml::Value& value, std::string_view what) {
  return {Errc::Invalid, fmt::format("{}: {}", value.where(), what)};
}

Status apply_file(std::string_view text, std::string_view name, Options& options) {
  GANTRY_TRY(const auto file, yaml::parse(text, name));
  if (file.kind != yaml::Value::Kind::Map)
    return Error(Errc::Invalid, fmt::format("{}: not a map", name));
  GANTRY_CHECK(check_version(file));
  return read_map(file, "", options);
}

}  // namespace gantry::options
