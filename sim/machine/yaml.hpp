// SPDX-License-Identifier: Apache-2.0
// Machine files are YAML, with limits that no machine needs to exceed.
#pragma once

#include "base/yaml/value.hpp"

namespace gantry::sim {

using YamlValue = yaml::Value;
using YamlEntry = yaml::MapEntry;
using yaml::merge;

inline constexpr std::size_t kYamlBytes = yaml::Limits{}.bytes;

inline Result<YamlValue> parse_yaml(std::string_view text, std::string_view file) {
  return yaml::parse(text, file);
}

}  // namespace gantry::sim
