// SPDX-License-Identifier: Apache-2.0
// Specifications that others wrote, YAML or JSON. Strict, as engines are: an unknown key rejects
// the file. Bounded: hostile text gives an error with the line, never a crash or a huge allocation.
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/spec.hpp"

#include <string_view>

namespace gantry::cdi {

inline constexpr std::size_t kMaxSpecBytes = std::size_t{4} << 20;

// The text as a value, whatever it says. `file` is what messages call it.
Result<Spec> parse_spec(std::string_view text, std::string_view file);

// The same, and it must hold what validate.hpp asks for: what an engine would load.
Result<Spec> load_spec(std::string_view text, std::string_view file);

}  // namespace gantry::cdi
