// SPDX-License-Identifier: Apache-2.0
// Engines look for files on the host. Where that is not our own / (--root=/host in a container, or
// a simulated machine, whose agent may be in a container too), our libraries and our hook may be in
// our image alone, and are put onto the host before they are named.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>

namespace gantry::backend {

inline constexpr const char* kFenceCopies = "/var/lib/gantry/fence";  // DIGEST/NAME below it

// `path` as an engine sees it: as it is, or where its copy is on the host. A copy never changes: a
// container that is mounted from it may outlive us. Nor does anything remove it: a container that
// is stopped has its path in its engine's own records (containerd's are a database of its own), and
// is mounted from it again when it is started. `gantry doctor` (shares.copies) says how many there
// are.
Result<std::string> path_for_engines(const sys::Host& host, const std::string& path);

}  // namespace gantry::backend
