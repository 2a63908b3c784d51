// SPDX-License-Identifier: Apache-2.0
// What the readers of YAML files of this module share.
#pragma once

#include "base/yaml/value.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

// "config.yaml:12: TEXT"
Error wrong_value(const yaml::Value& at, std::string_view text);

Status only_fields(const yaml::Value& map, std::string_view what,
                   const std::vector<std::string>& known);

// The text with version v1 as a map; aliases are copied and tags ignored, as other readers do.
Result<yaml::Value> read_v1(std::string_view text, std::string_view file);

}  // namespace gantry::mig
