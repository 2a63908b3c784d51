// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::sys {

// Removes a directory and everything below it, by descriptor, without following links. Returns
// Corrupt if it is nested more deeply than any tree of ours.
Status remove_tree(int parent, const std::string& name);

}  // namespace gantry::sys
