// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/driver_dir/garbage.hpp"

#include <set>
#include <string>
#include <vector>

namespace gantry::driver_dir {

// The procfs that shows every process of the machine: the given one, else the one of the host's
// root (/host/proc in a pod). Unsupported, with what to do, if there is none.
Result<std::string> find_host_procfs(const sys::Host& host, const GarbageOptions& options);

// The directories that any process of that procfs has mounted. Returns an error if the mounts of a
// process cannot be read.
Result<std::set<std::string>> find_mounted(const std::vector<std::string>& names,
                                           const std::string& processes);

}  // namespace gantry::driver_dir
