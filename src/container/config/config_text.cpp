// SPDX-License-Identifier: Apache-2.0
#include "container/config/config_text.hpp"

#include "base/core/text.hpp"
#include "base/toml_edit/document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::config {
namespace {

// Ubuntu's /sbin/ldconfig is a script around ldconfig.real.
Settings defaults_of(const sys::Host& host) {
  Settings settings;
  if (host.exists("/sbin/ldconfig.real")) settings.cli.ldconfig = "@/sbin/ldconfig.real";
  return settings;
}

// On SUSE the nodes belong to the group video.
bool is_suse(const sys::Host& host) {
  const auto text = host.read("/etc/os-release", 64 << 10).value_or("");
  for (const auto line : lines(text)) {
    if (line.starts_with("ID=") || line.starts_with("ID_LIKE=")) {
      if (contains(line, "suse")) return true;
    }
  }
  return false;
}

std::string line_of(const Key& key, const Settings& settings, bool suse) {
  const auto name = leaf_name(key.name);
  if (key.name == "nvidia-container-cli.user" && suse)
    return fmt::format("{} = {}\n", name, key.sample);
  if (key.name.starts_with("gantry."))
    return fmt::format("#{} = {}\n", name, to_toml(key, settings));
  if (!key.sample.empty()) return fmt::format("#{} = {}\n", name, key.sample);
  return fmt::format("{} = {}\n", name, to_toml(key, settings));
}

toml_edit::Path path_of(const Key& key) {
  toml_edit::Path path;
  for (const auto part : split(key.name, '.')) path.emplace_back(part);
  return path;
}

}  // namespace

std::string default_text(const sys::Host& host) {
  const auto settings = defaults_of(host);
  const bool suse = is_suse(host);
  std::vector<std::string_view> tables;
  for (const auto& key : keys()) {
    if (std::find(tables.begin(), tables.end(), table_of(key.name)) == tables.end()) {
      tables.push_back(table_of(key.name));
    }
  }
  std::string text;
  for (const auto table : tables) {
    std::vector<const Key*> members;
    for (const auto& key : keys()) {
      if (table_of(key.name) == table && key.sample != kOmitted) members.push_back(&key);
    }
    if (members.empty()) continue;
    std::sort(members.begin(), members.end(),
              [](const Key* a, const Key* b) { return a->name < b->name; });
    if (!text.empty()) text += '\n';
    if (!table.empty()) text += fmt::format("[{}]\n", table);
    for (const auto* key : members) text += line_of(*key, settings, suse);
  }
  return text;
}

Result<std::string> set_in_text(const std::string& text, std::string_view assignment) {
  const auto equals = assignment.find('=');
  const auto name = trim(assignment.substr(0, equals));
  const auto* key = find_key(name);
  if (key == nullptr) {
    return Error(
        Errc::NotFound,
        fmt::format("there is no key `{}`; `gantry config show --effective` lists all keys", name));
  }
  const bool flag = std::holds_alternative<Field<bool>>(key->field);
  if (equals == std::string_view::npos && !flag) {
    return Error(Errc::Invalid, fmt::format("{0} needs a value: {0}=...", name));
  }
  const auto words =
      equals == std::string_view::npos ? "true" : trim(assignment.substr(equals + 1));
  GANTRY_TRY(auto document, toml_edit::Document::parse(text));
  if (words == "nil") {
    GANTRY_CHECK(document.remove(path_of(*key)));
    return document.text();
  }
  Settings settings;
  GANTRY_CHECK(set_value(*key, words, settings));
  GANTRY_CHECK(document.set(path_of(*key), to_toml(*key, settings)));
  return document.text();
}

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::Default: return "default";
    case Origin::File: return "file";
    case Origin::Environment: return "environment";
  }
  return "";
}

Result<std::vector<EffectiveValue>> effective_values(const LoadedSettings& loaded,
                                                     const EnvironmentLookup& environment) {
  auto settings = loaded.settings;
  GANTRY_CHECK(apply_environment(settings, environment));
  std::vector<EffectiveValue> all;
  for (const auto& key : keys()) {
    auto origin = Origin::Default;
    if (std::find(loaded.named.begin(), loaded.named.end(), key.name) != loaded.named.end()) {
      origin = Origin::File;
    }
    if (!key.environment.empty() && !environment(key.environment).value_or("").empty()) {
      origin = Origin::Environment;
    }
    all.push_back({&key, to_toml(key, settings), origin});
  }
  return all;
}

}  // namespace gantry::config
