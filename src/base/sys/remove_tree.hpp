// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::sys {

// Removes a directory and everything below it, by descriptor, without following links, however
// deep it is. Corrupt if somebody moves a part of it meanwhile.
Status remove_tree(int parent, const std::string& name);

}  // namespace gantry::sys
