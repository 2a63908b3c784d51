// SPDX-License-Identifier: Apache-2.0
// Writes a specification as text. The same value always gives the same bytes: keys are in the order
// of the format, lists keep their order, and nothing depends on the machine.
#pragma once

#include "container/cdi/spec.hpp"

#include <string>

namespace gantry::cdi {

enum class Format : std::uint8_t { Yaml, Json };

// The format that fits a file name: .json is JSON, everything else YAML.
Format format_of(std::string_view path);

// YAML starts with "---". If spec.version is empty, writes the lowest version that has all fields.
std::string to_text(const Spec& spec, Format format);

}  // namespace gantry::cdi
