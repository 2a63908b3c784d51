// SPDX-License-Identifier: Apache-2.0
// Reads CDI specifications, YAML or JSON. Strict like engines: an unknown key rejects the file.
// Bounded: hostile text gives an error with the line, never a crash or a huge allocation.
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/spec.hpp"

#include <string_view>

namespace gantry::cdi {

inline constexpr std::size_t kMaxSpecBytes = std::size_t{4} << 20;

// Parses the text without validating it. Messages call it `file`.
Result<Spec> parse_spec(std::string_view text, std::string_view file);

// Parses the text and validates it (validate.hpp): succeeds only if an engine would load it.
Result<Spec> load_spec(std::string_view text, std::string_view file);

}  // namespace gantry::cdi
