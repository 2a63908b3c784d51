// SPDX-License-Identifier: Apache-2.0
// The objects of a manifest, as kubectl reads them.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::explain {

// YAML or JSON. Aliases are replaced by what they stand for, merge keys (<<) by their entries.
// Corrupt with file and line for a text that cannot be read or is beyond the limits.
Result<std::vector<json::Document>> manifest_objects(std::string_view text,
                                                     const std::string& file);

}  // namespace gantry::explain
