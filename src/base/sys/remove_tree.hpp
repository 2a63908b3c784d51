// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::sys {

// A directory and everything below it, by descriptor; links are not followed. Corrupt where it is
// nested deeper than anything we make.
Status remove_tree(int parent, const std::string& name);

}  // namespace gantry::sys
