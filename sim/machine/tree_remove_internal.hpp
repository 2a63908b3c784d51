// SPDX-License-Identifier: Apache-2.0
// Taking a tree away without taking anything else: what is mounted in it belongs to somebody.
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::sim {

// Invalid when the directory itself is a mount point, Busy when something is mounted below it.
Status refuse_mounts(const std::string& directory);

// Removes a file or a whole directory; nothing there is fine. Links are not followed and no other
// mount is entered. Goes on after a failure, and returns the first.
Status remove_tree(const std::string& path);

}  // namespace gantry::sim
