// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>

namespace gantry {

std::string to_base64(std::string_view bytes);

// Decodes the standard alphabet. Skips white space; the padding may be missing. Returns Invalid for
// other characters.
Result<std::string> from_base64(std::string_view text);

}  // namespace gantry
