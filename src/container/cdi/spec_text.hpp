// SPDX-License-Identifier: Apache-2.0
// A specification as text. The same value always gives the same bytes: keys in the order of the
// format, lists as they are, nothing that depends on the machine.
#pragma once

#include "container/cdi/spec.hpp"

#include <string>

namespace gantry::cdi {

enum class Format : std::uint8_t { Yaml, Json };

// By the file's name: .json is JSON, everything else YAML.
Format format_of(std::string_view path);

// YAML begins with "---". Where spec.version is empty the lowest that can say the content is put.
std::string to_text(const Spec& spec, Format format);

}  // namespace gantry::cdi
