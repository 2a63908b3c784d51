// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/driver_dir/garbage.hpp"

#include <set>
#include <string>
#include <vector>

namespace gantry::driver_dir {

// The procfs in which every process of the machine is seen: the given one, else that of the host's
// root (/host/proc in a pod). Unsupported, with what to do, where there is none.
Result<std::string> find_host_procfs(const sys::Host& host, const GarbageOptions& options);

// Which of these directories some process has among its mounts, by the processes of that procfs.
// An error where one of them cannot be looked at.
Result<std::set<std::string>> find_mounted(const std::vector<std::string>& names,
                                           const std::string& processes);

}  // namespace gantry::driver_dir
