// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gantry::model {

// "580.159.04", "384.98": two to four numbers, the first of three or four digits. Not "1", and not
// "1.1" of libraries with their own version numbers.
bool is_driver_version(std::string_view text);

}  // namespace gantry::model
