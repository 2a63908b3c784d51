// SPDX-License-Identifier: Apache-2.0
#include "container/config/settings.hpp"

#include "container/config/keys.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gantry::config {

std::optional<std::string> process_environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string config_path(const EnvironmentLookup& environment) {
  if (auto path = environment("NVIDIA_CTK_CONFIG_FILE_PATH"); path && !path->empty()) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(*path, error);
    return error ? *path : absolute.lexically_normal().string();
  }
  if (auto home = environment("XDG_CONFIG_HOME"); home && home->starts_with('/')) {
    return *home + "/nvidia-container-runtime/config.toml";
  }
  return std::string(kConfigPath);
}

Status apply_environment(Settings& settings, const EnvironmentLookup& environment) {
  for (const auto& key : keys()) {
    if (key.environment.empty()) continue;
    const auto value = environment(key.environment);
    if (!value || value->empty()) continue;
    GANTRY_CHECK(set_value(key, *value, settings).in(key.environment));
  }
  return {};
}

Result<LoadedSettings> load_with_warnings(const sys::Host& host, std::string_view path) {
  auto text = host.read(path, kMaxConfigBytes);
  if (!text.ok() && text.error().code() == Errc::NotFound) return LoadedSettings{};
  if (!text.ok()) return std::move(text).error().in("reading the configuration");
  return parse(*text).in(path);
}

Result<Settings> load(const sys::Host& host, std::string_view path) {
  GANTRY_TRY(auto loaded, load_with_warnings(host, path));
  return std::move(loaded.settings);
}

std::string machine_root(const Settings& settings) {
  if (!settings.gantry.root.empty()) return settings.gantry.root;
  return settings.cli.root.empty() ? "/" : settings.cli.root;
}

EnvironmentPolicy environment_policy(const Settings& settings) {
  if (settings.gantry.environment == "never") return EnvironmentPolicy::Never;
  if (settings.gantry.environment == "privileged" || !settings.accept_envvar_when_unprivileged) {
    return EnvironmentPolicy::Privileged;
  }
  return EnvironmentPolicy::Any;
}

}  // namespace gantry::config
