// SPDX-License-Identifier: Apache-2.0
// Removes a tree, but nothing that is mounted in it.
#pragma once

#include "base/core/result.hpp"

#include <string>

namespace gantry::sim {

// Invalid if the directory itself is a mount point, Busy if something is mounted below it.
Status refuse_mounts(const std::string& directory);

// Removes a file or a whole directory; succeeds if it does not exist. Does not follow links and
// does not enter other mounts. Continues after a failure and returns the first one.
Status remove_tree(const std::string& path);

}  // namespace gantry::sim
