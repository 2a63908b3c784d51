// SPDX-License-Identifier: Apache-2.0
// Chooses this node's configuration: a ConfigMap mounted as a directory has all configurations by
// name, and a label of the node names one of them. The settings are those of NVIDIA's
// config-manager.
#pragma once

#include "base/core/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::options {

struct ConfigManagerSettings {
  std::string node;                                       // NODE_NAME
  std::string label = "nvidia.com/device-plugin.config";  // NODE_LABEL
  std::string directory;                                  // CONFIG_FILE_SRCDIR
  std::string default_name;                               // DEFAULT_CONFIG
  std::vector<std::string> fallbacks;                     // FALLBACK_STRATEGIES, in order
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// nullopt if CONFIG_FILE_SRCDIR is not set. Invalid if a fallback is unknown.
Result<std::optional<ConfigManagerSettings>> read_settings(const Environment& environment);

// Returns one of `names`, or "" for no configuration (fallback `empty`). NotFound if the label or
// the default names a configuration that does not exist: another one must not be used instead.
Result<std::string> choose_config(const ConfigManagerSettings& setting,
                                  const std::optional<std::string>& label,
                                  const std::vector<std::string>& names);

// The names of the configurations in the directory, sorted. Skips entries that begin with two dots,
// which belong to the ConfigMap volume.
Result<std::vector<std::string>> list_configs(const std::string& directory);

}  // namespace gantry::options
