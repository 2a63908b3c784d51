// SPDX-License-Identifier: Apache-2.0
// Container engines look for files on the host. If the host's root is not this process's /
// (--root=/host in a container, or a simulated machine, whose agent may also be in a container),
// Gantry's libraries and hook may exist only in the image. They are copied to the host before a
// specification names them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>

namespace gantry::backend {

// Returns the path by which an engine finds the file: `path` itself, or its copy on the host, below
// policy::kFenceCopies. A copy never changes, because a container that mounts it may outlive this
// process. Copies are never removed: the engine's records of a stopped container contain the path
// (containerd keeps them in its own database), and the container mounts the file again when it
// starts. `gantry doctor` (shares.copies) says how many copies there are.
Result<std::string> path_for_engines(const sys::Host& host, const std::string& path);

}  // namespace gantry::backend
