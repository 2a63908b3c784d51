// SPDX-License-Identifier: Apache-2.0
// Which of a cluster's configurations is this node's: a ConfigMap mounted as a directory has them
// by name, a label of the node says which. The settings are those of NVIDIA's config-manager.
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

// nullopt when nobody asked: no CONFIG_FILE_SRCDIR. Invalid for a fallback that there is not.
Result<std::optional<ConfigManagerSettings>> read_settings(const Environment& environment);

// A name among `names`; "" for no configuration at all (fallback `empty`). A label, or a default,
// that is none of them is NotFound: another one in its place would surprise.
Result<std::string> choose_config(const ConfigManagerSettings& setting,
                                  const std::optional<std::string>& label,
                                  const std::vector<std::string>& names);

// The configurations in the directory, sorted. What a ConfigMap volume has beside them begins with
// two dots.
Result<std::vector<std::string>> list_configs(const std::string& directory);

}  // namespace gantry::options
