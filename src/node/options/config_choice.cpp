// SPDX-License-Identifier: Apache-2.0
#include "node/options/config_choice.hpp"

#include "base/sys/host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::options {
namespace {

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (comma > 0) words.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

bool contains_name(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<std::string> named(std::string_view what, const std::string& name,
                          const std::vector<std::string>& names) {
  if (contains_name(names, name)) return name;
  return Error(Errc::NotFound, fmt::format("{} is `{}`, which is not one of the configurations: {}",
                                           what, name, fmt::join(names, ", ")));
}

}  // namespace

Result<std::optional<ConfigManagerSettings>> read_settings(const Environment& environment) {
  const auto value = [&](std::string_view name) { return environment(name).value_or(""); };
  ConfigManagerSettings setting{.node = value("NODE_NAME"),
                                .directory = value("CONFIG_FILE_SRCDIR"),
                                .default_name = value("DEFAULT_CONFIG"),
                                .fallbacks = split_list(value("FALLBACK_STRATEGIES"))};
  if (setting.directory.empty()) return std::optional<ConfigManagerSettings>();
  if (auto label = value("NODE_LABEL"); !label.empty()) setting.label = std::move(label);
  for (const auto& word : setting.fallbacks) {
    if (word == "named" || word == "single" || word == "empty") continue;
    return Error(Errc::Invalid,
                 fmt::format("FALLBACK_STRATEGIES: `{}` is not named, single or empty", word));
  }
  return std::optional(std::move(setting));
}

Result<std::string> choose_config(const ConfigManagerSettings& setting,
                                  const std::optional<std::string>& label,
                                  const std::vector<std::string>& names) {
  if (label && !label->empty()) {
    return named(fmt::format("the node's label {}", setting.label), *label, names);
  }
  if (!setting.default_name.empty()) return named("the default", setting.default_name, names);
  for (const auto& word : setting.fallbacks) {
    if (word == "named" && contains_name(names, "default")) return std::string("default");
    if (word == "single" && names.size() == 1) return names.front();
    if (word == "empty") return std::string();
  }
  return Error(
      Errc::NotFound,
      fmt::format("the node has no label {}, and no default is set; the configurations are: {}",
                  setting.label, fmt::join(names, ", ")));
}

Result<std::vector<std::string>> list_configs(const std::string& directory) {
  GANTRY_TRY(const auto host, sys::Host::at("/"));
  GANTRY_TRY(auto names, host.list(directory).in("configurations"));
  std::erase_if(names, [](const std::string& name) { return name.starts_with(".."); });
  return names;
}

}  // namespace gantry::options
