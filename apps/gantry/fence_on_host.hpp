// SPDX-License-Identifier: Apache-2.0
// Engines look for files on the host. Where that is not our own / (--root=/host in a container, or
// a simulated machine, whose agent may be in a container too), our libraries and our hook may be in
// our image alone, and are put onto the host before they are named.
#pragma once

#include "base/result.hpp"
#include "sys/host.hpp"

#include <string>

namespace gantry::cli {

inline constexpr const char* kFenceOnHost = "/var/lib/gantry/fence";  // DIGEST/NAME below it

// `path` as an engine sees it: as it is, or where its copy is on the host. A copy never changes: a
// container that is mounted from it may outlive us.
Result<std::string> for_engines(const sys::Host& host, const std::string& path);

}  // namespace gantry::cli
