// SPDX-License-Identifier: Apache-2.0
// Versions whose files a container still has mounted: a directory that is removed under such a
// mount is empty for the container.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gantry::driver_setup {

struct VersionUser {
  std::uint32_t pid = 0;  // 0: too many mounts or processes to know
  std::string command;
  bool operator==(const VersionUser&) const = default;
};
std::string describe(const VersionUser& user);  // "process 4711 (python3) has its files mounted"

// By the name below DIR/.versions, the first process of each that is in use. Bounded: reads each
// mount namespace once; what cannot be known counts as in use.
std::map<std::string, VersionUser> versions_in_use(const sys::Host& host,
                                                   const std::vector<std::string>& names);

}  // namespace gantry::driver_setup
